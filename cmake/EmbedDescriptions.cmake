# Writes OUTPUT: a C++ file that holds the text of every file of FILES (see src/model/embedded_descriptions.h).
set(text "#include \"model/embedded_descriptions.h\"\n\nnamespace holmes::model {\n\nstd::vector<EmbeddedFile> EmbeddedDescriptions() {\n  return {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} content)
  string(APPEND text "      {\"${name}\", R\"yaml(${content})yaml\"},\n")
endforeach()
string(APPEND text "  };\n}\n\n}  // namespace holmes::model\n")
file(WRITE ${OUTPUT} "${text}")
