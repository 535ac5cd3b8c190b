/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's pool, arena and binning resources as peers, in a library of their own:
 * librmm is C++ and brings the CUDA run time along.
 *
 * All of them take memory from cudaMalloc through one upstream, which counts
 * it and holds the budget. A pool starts with nothing, so that what it grows
 * to is what was needed.
 */
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include <cuda_runtime_api.h>

#include <rmm/error.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include "bench/peer_plugin.h"

namespace
{

/* Bins of 256 bytes to 1 MiB. */
constexpr int8_t least_bin = 8;
constexpr int8_t largest_bin = 20;

/* What the driver's allocations have, and RMM's by default. */
constexpr std::size_t alignment = 256;

/* An arena cannot grow: without a budget it gets this share of what is free.
 */
constexpr std::size_t arena_share = 2;

struct account {
    std::mutex lock;
    std::uint64_t budget = 0; /* 0: none */
    std::uint64_t now = 0;
    std::uint64_t peak = 0;
};

/* cudaMalloc, counted. Copies share the account. */
class counted
{
  public:
    explicit counted(std::shared_ptr<account> of) : books_(std::move(of))
    {
    }

    void *allocate_sync(std::size_t bytes, std::size_t = alignment)
    {
        const std::lock_guard<std::mutex> held(books_->lock);
        void *ptr = nullptr;

        if (books_->budget != 0 && bytes > books_->budget - books_->now) {
            throw rmm::out_of_memory("over the budget");
        }
        if (cudaMalloc(&ptr, bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            throw rmm::out_of_memory("cudaMalloc failed");
        }
        books_->now += bytes;
        books_->peak = std::max(books_->peak, books_->now);
        return ptr;
    }

    void deallocate_sync(void *ptr, std::size_t bytes,
                         std::size_t = alignment) noexcept
    {
        const std::lock_guard<std::mutex> held(books_->lock);

        (void)cudaFree(ptr);
        books_->now -= bytes;
    }

    void *allocate(cuda::stream_ref, std::size_t bytes,
                   std::size_t = alignment)
    {
        return allocate_sync(bytes);
    }

    void deallocate(cuda::stream_ref, void *ptr, std::size_t bytes,
                    std::size_t = alignment) noexcept
    {
        deallocate_sync(ptr, bytes);
    }

    bool operator==(const counted &other) const noexcept
    {
        return books_ == other.books_;
    }

    bool operator!=(const counted &other) const noexcept
    {
        return !(*this == other);
    }

    friend void get_property(const counted &,
                             cuda::mr::device_accessible) noexcept
    {
    }

  private:
    std::shared_ptr<account> books_;
};

static_assert(cuda::mr::resource_with<counted, cuda::mr::device_accessible>,
              "the upstream is not what RMM takes");

/* What the bench holds: a resource and its account. */
template <typename Resource> struct peer {
    std::shared_ptr<account> books;
    Resource resource;
};

using pool = rmm::mr::pool_memory_resource;
using arena = rmm::mr::arena_memory_resource;
using binning = rmm::mr::binning_memory_resource;

std::optional<std::size_t> bound_of(const account &of)
{
    return of.budget != 0 ? std::optional<std::size_t>(of.budget)
                          : std::nullopt;
}

pool make_pool(const std::shared_ptr<account> &books)
{
    return pool(counted(books), 0, bound_of(*books));
}

arena make_arena(const std::shared_ptr<account> &books)
{
    std::size_t free = 0;
    std::size_t total = 0;

    if (books->budget != 0) {
        return arena(counted(books), books->budget);
    }
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
        throw rmm::logic_error("cudaMemGetInfo failed");
    }
    return arena(counted(books), free / arena_share / 256 * 256);
}

binning make_binning(const std::shared_ptr<account> &books)
{
    return binning(make_pool(books), least_bin, largest_bin);
}

/* No exception leaves these: the bench is C. */

template <typename Resource,
          Resource (*make)(const std::shared_ptr<account> &)>
int create(int device, std::uint64_t budget, void **made, char *message,
           std::size_t size)
{
    try {
        auto books = std::make_shared<account>();

        books->budget = budget;
        if (const cudaError_t res = cudaSetDevice(device);
            res != cudaSuccess) {
            throw rmm::logic_error(cudaGetErrorString(res));
        }
        *made = new peer<Resource>{books, make(books)};
        return CCMR_BENCH_PEER_OK;
    } catch (const std::bad_alloc &problem) {
        (void)std::snprintf(message, size, "%s", problem.what());
        return CCMR_BENCH_PEER_NO_MEMORY;
    } catch (const std::exception &problem) {
        (void)std::snprintf(message, size, "%s", problem.what());
    } catch (...) {
        (void)std::snprintf(message, size, "an exception");
    }
    return CCMR_BENCH_PEER_FAILED;
}

cuda::stream_ref stream_of(void *stream)
{
    return cuda::stream_ref(static_cast<cudaStream_t>(stream));
}

template <typename Resource>
int allocate(void *self, std::size_t bytes, void *stream, void **ptr)
{
    try {
        *ptr = static_cast<peer<Resource> *>(self)->resource.allocate(
            stream_of(stream), bytes, alignment);
        return CCMR_BENCH_PEER_OK;
    } catch (const std::bad_alloc &) {
        return CCMR_BENCH_PEER_NO_MEMORY;
    } catch (...) {
        return CCMR_BENCH_PEER_FAILED;
    }
}

template <typename Resource>
int deallocate(void *self, void *ptr, std::size_t bytes, void *stream)
{
    try {
        static_cast<peer<Resource> *>(self)->resource.deallocate(
            stream_of(stream), ptr, bytes, alignment);
        return CCMR_BENCH_PEER_OK;
    } catch (...) {
        return CCMR_BENCH_PEER_FAILED;
    }
}

template <typename Resource>
void reserved(void *self, std::uint64_t *now, std::uint64_t *peak)
{
    account &books = *static_cast<peer<Resource> *>(self)->books;
    const std::lock_guard<std::mutex> held(books.lock);

    *now = books.now;
    *peak = books.peak;
}

template <typename Resource> void destroy(void *self)
{
    delete static_cast<peer<Resource> *>(self);
}

template <typename Resource,
          Resource (*make)(const std::shared_ptr<account> &)>
constexpr ccmr_bench_peer entry(const char *name, const char *help)
{
    return {name,
            help,
            create<Resource, make>,
            allocate<Resource>,
            deallocate<Resource>,
            reserved<Resource>,
            destroy<Resource>};
}

const ccmr_bench_peer peers[] = {
    entry<pool, make_pool>("rmm-pool", "RMM's pool over cudaMalloc"),
    entry<arena, make_arena>("rmm-arena", "RMM's arena over cudaMalloc, of "
                                          "half of what is free"),
    entry<binning, make_binning>("rmm-binning", "RMM's bins of 256 B to 1 MiB "
                                                "over its pool"),
};

} // namespace

extern "C" __attribute__((visibility("default")))
const ccmr_bench_peers_table ccmr_bench_peers = {
    sizeof(ccmr_bench_peers_table), sizeof(ccmr_bench_peer), peers,
    sizeof(peers) / sizeof(peers[0])};
