# The API description (protocol/spec) becomes sources below build/gen at configure time, so that every target sees them;
# a changed .api file or generator configures again. See protocol/generate.
set(CUPLEX_GEN ${CMAKE_BINARY_DIR}/gen)
file(GLOB API_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/protocol/spec/*.api)
file(GLOB API_GENERATOR CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/protocol/generate/*.py)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${API_FILES} ${API_GENERATOR})
execute_process(
  COMMAND ${Python3_EXECUTABLE} -B -m protocol.generate ${CMAKE_SOURCE_DIR}/protocol/spec ${CUPLEX_GEN}
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)

# cuplex_fbs(SCHEMA OUT_FOLDER): SCHEMA.fbs -> OUT_FOLDER/SCHEMA_generated.h, now and whenever it changes.
function(cuplex_fbs SCHEMA OUT_FOLDER)
  cmake_path(GET SCHEMA STEM stem)
  set(header ${OUT_FOLDER}/${stem}_generated.h)
  if(NOT EXISTS ${header} OR ${SCHEMA} IS_NEWER_THAN ${header})
    execute_process(COMMAND ${FLATC} --cpp --gen-mutable --scoped-enums -o ${OUT_FOLDER} ${SCHEMA}
                    COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SCHEMA})
endfunction()
