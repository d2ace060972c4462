# Flags every target gets: warnings, optimisation that keeps results reproducible, sanitizers.
add_compile_options(-Wall -Wextra -Wshadow -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict)  # false alarms of g++ 12 on std::string (GCC PR 105651)
  if(CMAKE_UNITY_BUILD)
    add_compile_options(-Wno-subobject-linkage)  # sees our sources as headers of the unity file
  endif()
endif()
if(FIVEFOLD_WERROR)
  add_compile_options(-Werror)
endif()
if(FIVEFOLD_SANITIZE)
  add_compile_options(-fsanitize=${FIVEFOLD_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FIVEFOLD_SANITIZE})
endif()
if(FIVEFOLD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage of our code guides the fuzzers
endif()
find_package(Threads REQUIRED)
