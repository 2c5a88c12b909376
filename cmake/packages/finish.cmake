# SPDX-License-Identifier: MIT
# Run by cpack on the files of the packages before they are packed: compresses the files that Debian requires
# compressed, with its names.
file(GLOB_RECURSE changes ${CPACK_TEMPORARY_DIRECTORY}/CHANGELOG.md)
foreach(file ${changes})
  get_filename_component(folder ${file} DIRECTORY)
  file(RENAME ${file} ${folder}/changelog)
endforeach()
file(GLOB_RECURSE files ${CPACK_TEMPORARY_DIRECTORY}/*.1 ${CPACK_TEMPORARY_DIRECTORY}/changelog
  ${CPACK_TEMPORARY_DIRECTORY}/changelog.Debian)
foreach(file ${files})
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
