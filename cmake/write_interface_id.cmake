# SPDX-License-Identifier: MIT
# cmake -DSOURCE=tree -DOUTPUT=file.cpp -P: writes a function that returns a hash of all headers.
file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/common/*.h ${SOURCE}/plugins/*.h)
list(SORT headers)
set(all "")
foreach(header ${headers})
  file(SHA256 ${SOURCE}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE ${OUTPUT} "extern \"C\" const char* hsi_interface_id();\n"
  "extern \"C\" const char* hsi_interface_id() { return \"${id}\"; }\n")
