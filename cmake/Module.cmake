# module(NAME DEPS a b LIBS x): one folder of src/ as a library with its unit tests beside the code.
#
# A module sees only its own headers and those of its DEPS, because each module has an include root
# of its own; and DEPS must already exist, so the order of add_subdirectory is the layering itself.
# LIBS are outside libraries that its headers use, PRIVATE_LIBS those that only its sources use.
# `parallel/data` as NAME gives the target parallel_data and includes as "parallel/data/x.hpp".
function(module name)
  cmake_parse_arguments(M "" "" "DEPS;LIBS;PRIVATE_LIBS;TEST_DEPS" ${ARGN})
  string(REPLACE "/" "_" target ${name})
  set(deps "")
  foreach(dep IN LISTS M_DEPS M_TEST_DEPS)
    string(REPLACE "/" "_" dep_target ${dep})
    if(NOT TARGET ${dep_target})
      message(FATAL_ERROR "${name} may not depend on ${dep}: it is not below it (src/CMakeLists.txt)")
    endif()
  endforeach()
  foreach(dep IN LISTS M_DEPS)
    string(REPLACE "/" "_" dep_target ${dep})
    list(APPEND deps ${dep_target})
  endforeach()

  set(root ${CMAKE_BINARY_DIR}/include/${target})
  get_filename_component(parent ${root}/${name} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  # A folder inside with a CMakeLists.txt of its own is a module of its own.
  file(GLOB inner CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(list IN LISTS inner)
    get_filename_component(folder ${list} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${folder}/")
  endforeach()
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|/main)\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")

  if(sources)
    add_library(${target} STATIC ${sources})
    set(visibility PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()
  if(sources)
    target_link_libraries(${target} PRIVATE ${M_PRIVATE_LIBS})
  endif()
  target_include_directories(${target} ${visibility} ${root})
  target_link_libraries(${target} ${visibility} ${deps} ${M_LIBS} Threads::Threads)

  if(FIVEFOLD_TESTS AND tests)
    add_executable(${target}_test ${tests})
    add_dependencies(unit_tests ${target}_test)
    target_link_libraries(${target}_test PRIVATE ${target} GTest::gtest_main GTest::gmock)
    foreach(dep IN LISTS M_TEST_DEPS)
      string(REPLACE "/" "_" dep_target ${dep})
      target_link_libraries(${target}_test PRIVATE ${dep_target})
    endforeach()
    set_target_properties(${target}_test PROPERTIES UNITY_BUILD OFF)  # tests repeat helper names
    target_compile_definitions(${target}_test PRIVATE FIVEFOLD_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(${target}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}: "
                         PROPERTIES TIMEOUT 600 LABELS unit)
  endif()

  # x_fuzz.cpp is one libFuzzer target; its seeds lie in x_fuzz_corpus/ beside it.
  if(FIVEFOLD_FUZZ)
    foreach(fuzzer IN LISTS fuzzers)
      get_filename_component(fuzz_name ${fuzzer} NAME_WE)
      get_filename_component(fuzz_dir ${fuzzer} DIRECTORY)
      add_executable(${fuzz_name} ${fuzzer})
      target_link_libraries(${fuzz_name} PRIVATE ${target} -fsanitize=fuzzer)
      set(corpus "")
      if(EXISTS ${fuzz_dir}/${fuzz_name}_corpus)
        set(corpus ${fuzz_dir}/${fuzz_name}_corpus)
      endif()
      file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz/${fuzz_name})
      add_test(NAME fuzz/${fuzz_name} COMMAND ${fuzz_name} -max_total_time=5 -rss_limit_mb=4096
               -timeout=10 ${CMAKE_BINARY_DIR}/fuzz/${fuzz_name} ${corpus})
      set_tests_properties(fuzz/${fuzz_name} PROPERTIES LABELS fuzz)
    endforeach()
  endif()
endfunction()
