/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version of libcucoremr, and the attributes that its headers use.
 */
#ifndef CUCOREMR_VERSION_H
#define CUCOREMR_VERSION_H

#define CCMR_VERSION_MAJOR 0
#define CCMR_VERSION_MINOR 1
#define CCMR_VERSION_PATCH 0
/** major * 10000 + minor * 100 + patch of the headers compiled against. */
#define CCMR_VERSION                                                          \
    (CCMR_VERSION_MAJOR * 10000 + CCMR_VERSION_MINOR * 100 +                  \
     CCMR_VERSION_PATCH)

#if defined(__GNUC__)
#define CCMR_API __attribute__((visibility("default")))
#define CCMR_NODISCARD __attribute__((warn_unused_result))
#define CCMR_PURE __attribute__((pure))
#else
#define CCMR_API
#define CCMR_NODISCARD
#define CCMR_PURE
#endif

#ifdef __cplusplus
#define CCMR_BEGIN_DECLS extern "C" {
#define CCMR_END_DECLS }
#else
#define CCMR_BEGIN_DECLS
#define CCMR_END_DECLS
#endif

CCMR_BEGIN_DECLS

/**
 * The library's version as a number, CCMR_VERSION of the build that is
 * loaded. Any thread, any time, also after fork and during exit; never
 * blocks, never fails.
 * @since 0.1
 */
CCMR_API int ccmr_version(void);

/**
 * The library's version as text, "0.1.0". The string is static.
 * Thread rule and states as ccmr_version().
 * @since 0.1
 */
CCMR_API const char *ccmr_version_text(void);

CCMR_END_DECLS

#endif /* CUCOREMR_VERSION_H */
