# SPDX-License-Identifier: MIT
# The tools for files, which libhsi (plugins/arrays) lacks. Each is compiled separately, so that the linker can omit it.
set(HSI_FILE_TOOLS info orthorectify pipeline synth)

# hsi_tools(): one executable gdal_hsi with the tools of this folder (all gdal_hsi_NAME.cpp with their folders
# gdal_hsi_NAME/, and the sources in shared/). Each tool has a link gdal_hsi_NAME, which is the command. Also makes
# their manual pages, and their completion in bash.
function(hsi_tools)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/gdal_hsi_*.cpp)
  # Sources that several tools share, and the parts of tools that consist of several files.
  file(GLOB shared CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/shared/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/gdal_hsi_*/*.cpp)
  set(links "")
  foreach(source ${sources})
    get_filename_component(link ${source} NAME_WE)
    list(APPEND links ${link})
  endforeach()
  string(REPLACE "gdal_hsi_" "" names "${links}")
  list(JOIN names ", " declarations)
  list(TRANSFORM names PREPEND "&")
  list(JOIN names ", " addresses)
  configure_file(catalogue.cpp.in catalogue.cpp @ONLY)
  foreach(name ${HSI_FILE_TOOLS})
    set_source_files_properties(gdal_hsi_${name}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/catalogue.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # The catalogue is an object library, since other front ends also use it. Sources that are not tools come first: in
  # unity builds they must not see the names of the catalogue.
  add_library(hsi_catalogue STATIC ${shared} ${CMAKE_CURRENT_BINARY_DIR}/catalogue.cpp ${sources})
  target_include_directories(hsi_catalogue PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  # Links all rooms; the linker omits code that no tool uses.
  get_property(rooms GLOBAL PROPERTY HSI_ROOMS)
  list(TRANSFORM rooms PREPEND hsi_)
  list(REMOVE_ITEM rooms hsi_terminal)
  target_link_libraries(hsi_catalogue PUBLIC hsi_tool PRIVATE hsi_warnings ${rooms})
  hsi_optimise_lightly(hsi_catalogue)
  hsi_precompile(hsi_catalogue)
  add_executable(gdal_hsi gdal_hsi.cpp)
  target_link_libraries(gdal_hsi PRIVATE hsi_warnings hsi_terminal hsi_catalogue hsi_links)
  # Loaded at run time, so the linker does not require it.
  if(TARGET hsi_mpi)
    add_dependencies(gdal_hsi hsi_mpi)
  endif()
  set(directory ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  foreach(link ${links})
    add_custom_command(TARGET gdal_hsi POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -E create_symlink gdal_hsi ${directory}/${link})
  endforeach()
  install(TARGETS gdal_hsi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  foreach(link ${links})
    install(FILES ${directory}/${link} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
  hsi_man_pages(gdal_hsi ${links})
  hsi_bash_completion(${links})
endfunction()

# Manual pages in share/man/man1 of the build, where man finds them if bin is on PATH: gdal_hsi prints them.
function(hsi_man_pages)
  if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    return()
  endif()
  set(directory ${CMAKE_BINARY_DIR}/share/man/man1)
  file(MAKE_DIRECTORY ${directory})
  foreach(name ${ARGN})
    add_custom_command(OUTPUT ${directory}/${name}.1 COMMAND gdal_hsi --man ${name} > ${directory}/${name}.1
      DEPENDS gdal_hsi COMMENT "Writing the manual page ${name}(1)" VERBATIM)
    list(APPEND pages ${directory}/${name}.1)
  endforeach()
  add_custom_target(hsi_man ALL DEPENDS ${pages})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endfunction()

# One script for bash under the name of every command, since bash-completion searches by name.
function(hsi_bash_completion)
  set(links ${ARGN})
  list(JOIN links " " links)
  set(directory ${CMAKE_BINARY_DIR}/share/bash-completion/completions)
  configure_file(completion.bash.in ${directory}/gdal_hsi @ONLY)
  install(FILES ${directory}/gdal_hsi DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  foreach(link ${ARGN})
    file(CREATE_LINK gdal_hsi ${directory}/${link} SYMBOLIC)
    install(FILES ${directory}/${link} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  endforeach()
endfunction()
