# SPDX-License-Identifier: MIT
# Debian packages by cpack (scripts/package): gdal-hsi, the tools with the pixel functions, manual pages, completion and
# documentation; libhsi0, libhsi-dev and python3-gdal-hsi, the tools on arrays; gdal-hsi-cuda, the CUDA modules, if they
# were built; qgis-plugin-gdal-hsi, the Processing provider. Dependencies follow from the linker's records. Each
# component of the installation is a package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gdal-hsi)
set(CPACK_PACKAGE_VENDOR "The gdal-hsi authors")
# Maintainers set their names in DEBFULLNAME and DEBEMAIL, as for Debian's own tools.
set(CPACK_PACKAGE_CONTACT "The gdal-hsi authors <packages@gdal-hsi.invalid>")
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64") # otherwise that of the build machine
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL gdal-hsi qgis-plugin-gdal-hsi libhsi0 libhsi-dev python3-gdal-hsi)
if(HSI_HAVE_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL gdal-hsi-cuda)
endif()
if(HSI_HAVE_MPI)
  list(APPEND CPACK_COMPONENTS_ALL gdal-hsi-mpi)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# "~deb12": the package for Debian 12 sorts before the same version for Debian 13, so a system upgrade replaces it.
set(HSI_DISTRIBUTION "" CACHE STRING "What the packages' version says of the distribution (scripts/package: deb12, ubuntu2404)")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
if(HSI_DISTRIBUTION)
  string(APPEND CPACK_DEBIAN_PACKAGE_RELEASE "~${HSI_DISTRIBUTION}")
endif()

set(CPACK_DEBIAN_GDAL-HSI_PACKAGE_NAME gdal-hsi)
set(CPACK_DEBIAN_GDAL-HSI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_GDAL-HSI_PACKAGE_RECOMMENDS "gdal-bin")
set(CPACK_DEBIAN_GDAL-HSI_PACKAGE_SUGGESTS "gdal-hsi-cuda, gdal-hsi-mpi, qgis")
set(CPACK_COMPONENT_GDAL-HSI_DESCRIPTION "Command-line tools for the scenes of imaging spectrometers that behave like
GDAL's own: spatial preprocessing, principal components, diffusion profiles,
target detection, unmixing, classification with support vector machines and
random fields, accuracy. Scenes may be larger than memory, results do not
depend on tiles or threads, and georeference, wavelengths and nodata
survive. GDAL's pixel functions of the suite come with it, and the commands
of 'gdal hsi' for GDAL 3.11 and newer.")

set(CPACK_DEBIAN_GDAL-HSI-CUDA_PACKAGE_NAME gdal-hsi-cuda)
# NVIDIA's libraries come from NVIDIA's packages or from a manually installed toolkit, which dpkg does not know.
set(CPACK_DEBIAN_GDAL-HSI-CUDA_PACKAGE_DEPENDS
  "gdal-hsi (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}), libc6, libstdc++6, libgcc-s1, libhwy1 | libhwy1t64, libopenblas0")
set(CPACK_DEBIAN_GDAL-HSI-CUDA_PACKAGE_SECTION contrib/science)
set(CPACK_COMPONENT_GDAL-HSI-CUDA_DESCRIPTION "The modules with which the tools of gdal-hsi compute on NVIDIA GPUs. They
are loaded when there is a GPU and a tool wants it; the driver and the
libraries of the CUDA Toolkit ${CUDAToolkit_VERSION_MAJOR} (cuBLAS,
cuSOLVER, cuFFT) have to be there.")
if(HSI_HAVE_CUDA)
  set(CPACK_DEBIAN_GDAL-HSI-CUDA_PACKAGE_RECOMMENDS
    "cuda-libraries-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}")
endif()

set(CPACK_DEBIAN_QGIS-PLUGIN-GDAL-HSI_PACKAGE_NAME qgis-plugin-gdal-hsi)
set(CPACK_DEBIAN_QGIS-PLUGIN-GDAL-HSI_PACKAGE_ARCHITECTURE all)
# Any version of gdal-hsi: forms are made from the definitions that the installed executable prints.
set(CPACK_DEBIAN_QGIS-PLUGIN-GDAL-HSI_PACKAGE_DEPENDS "gdal-hsi, qgis (>= 3.22), python3-qgis")
set(CPACK_DEBIAN_QGIS-PLUGIN-GDAL-HSI_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/packages/qgis/prerm)
set(CPACK_COMPONENT_QGIS-PLUGIN-GDAL-HSI_DESCRIPTION "The tools of gdal-hsi in the Processing toolbox of QGIS: forms
with help, ranges and choices, progress, batches, models and qgis_process,
and styles for what comes out. Tick GDAL-HSI in the plugin manager, or run
'qgis_process plugins enable gdal_hsi'.")

set(HSI_PACKAGE_IS_EXACT "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_LIBHSI0_PACKAGE_NAME libhsi0)
set(CPACK_DEBIAN_LIBHSI0_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBHSI0_PACKAGE_SHLIBDEPS ON)
# A trigger updates the linker's cache; cpack would call ldconfig (packages/size.cmake).
set(CPACK_DEBIAN_LIBHSI0_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/packages/libhsi0/shlibs
  ${CMAKE_CURRENT_LIST_DIR}/packages/libhsi0/triggers)
set(CPACK_DEBIAN_LIBHSI0_PACKAGE_SUGGESTS "gdal-hsi-cuda")
set(CPACK_COMPONENT_LIBHSI0_DESCRIPTION "The tools of gdal-hsi on arrays in memory: a C library without GDAL.
Arrays may have any strides and real types; results have the bits of the
tools. This package has the shared library.")

set(CPACK_DEBIAN_LIBHSI-DEV_PACKAGE_NAME libhsi-dev)
set(CPACK_DEBIAN_LIBHSI-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHSI-DEV_PACKAGE_DEPENDS "libhsi0 ${HSI_PACKAGE_IS_EXACT}")
set(CPACK_COMPONENT_LIBHSI-DEV_DESCRIPTION "The header of libhsi, the tools of gdal-hsi on arrays in memory, and the
link by which programs are linked to it.")

set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_NAME python3-gdal-hsi)
set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_ARCHITECTURE all)
# Functions are made from the definitions in the installed library; structures belong to libhsi0.
set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_DEPENDS "python3 (>= 3.9), python3-numpy, libhsi0 (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_RECOMMENDS "gdal-hsi")
set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_SUGGESTS "python3-xarray, python3-sklearn, python3-tqdm")
set(CPACK_DEBIAN_PYTHON3-GDAL-HSI_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/packages/python/postinst
  ${CMAKE_CURRENT_LIST_DIR}/packages/python/prerm)
set(CPACK_COMPONENT_PYTHON3-GDAL-HSI_DESCRIPTION "The tools of gdal-hsi as functions of Python on NumPy arrays and
xarray, as estimators for scikit-learn, and on files by child processes.")

set(CPACK_DEBIAN_GDAL-HSI-MPI_PACKAGE_NAME gdal-hsi-mpi)
set(CPACK_DEBIAN_GDAL-HSI-MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_GDAL-HSI-MPI_PACKAGE_DEPENDS "gdal-hsi (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_COMPONENT_GDAL-HSI-MPI_DESCRIPTION "The module with which the processes of one job (mpirun, srun) share
a run of a tool of gdal-hsi. It is loaded when a tool was started as one of
several.")

# Debian's files for a package, one folder per package.
string(TIMESTAMP HSI_PACKAGE_DATE "%a, %d %b %Y 00:00:00 +0000" UTC)
set(HSI_PACKAGE_VERSION ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
file(READ ${CMAKE_SOURCE_DIR}/LICENSE licence)
string(REGEX REPLACE "^MIT License\n\n[^\n]*\n\n" "" licence "${licence}")
string(STRIP "${licence}" licence)
string(REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REPLACE "\n" "\n " HSI_LICENCE "${licence}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/packages/copyright.in ${CMAKE_BINARY_DIR}/packages/copyright @ONLY)
foreach(package ${CPACK_COMPONENTS_ALL})
  set(HSI_PACKAGE ${package})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/packages/changelog.in ${CMAKE_BINARY_DIR}/packages/${package}/changelog.Debian @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/packages/copyright ${CMAKE_BINARY_DIR}/packages/${package}/changelog.Debian
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${package} EXCLUDE_FROM_ALL)
endforeach()
# cpack compresses the files that Debian requires compressed, and removes the build machine's search paths from the
# modules.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/packages/finish.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/packages/size.cmake)
include(CPack)
