# SPDX-License-Identifier: MIT
# Run by cpack on the finished packages: sets their installed size. cpack counts a link as its target, and the tools are
# links to one executable, so apt would report many times the space. As in dpkg-gencontrol, a file counts in whole KiB,
# and everything else as one. Also removes cpack's scripts that call ldconfig, since a trigger calls it.
foreach(package ${CPACK_PACKAGE_FILES})
  set(folder ${package}.unpacked)
  execute_process(COMMAND dpkg-deb --raw-extract ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${folder}/DEBIAN/triggers)
    file(REMOVE ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
  endif()
  set(size 0)
  file(GLOB_RECURSE names LIST_DIRECTORIES true ${folder}/usr/*)
  foreach(name ${names})
    set(bytes 1024)
    if(NOT IS_DIRECTORY ${name} AND NOT IS_SYMLINK ${name})
      file(SIZE ${name} bytes)
    endif()
    math(EXPR size "${size} + (${bytes} + 1023) / 1024")
  endforeach()
  file(READ ${folder}/DEBIAN/control control)
  string(REGEX REPLACE "\nInstalled-Size: [0-9]+\n" "\nInstalled-Size: ${size}\n" control "${control}")
  file(WRITE ${folder}/DEBIAN/control "${control}")
  execute_process(COMMAND dpkg-deb --root-owner-group -Zgzip --build ${folder} ${package} OUTPUT_QUIET
    COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE ${folder})
endforeach()
