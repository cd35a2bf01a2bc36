/* platform.h - the platform of this program, as releases of tools and providers name it. */
#ifndef DF_BASE_PLATFORM_H
#define DF_BASE_PLATFORM_H

#define DF_OS_NAME "linux"
#if defined(__x86_64__)
#define DF_ARCH_NAME "amd64"
#elif defined(__aarch64__)
#define DF_ARCH_NAME "arm64"
#elif defined(__i386__)
#define DF_ARCH_NAME "386"
#elif defined(__arm__)
#define DF_ARCH_NAME "arm"
#else
#error "name this architecture as the releases do"
#endif
#define DF_PLATFORM DF_OS_NAME "_" DF_ARCH_NAME

#endif
