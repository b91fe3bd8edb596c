// The program's descriptors of textures, as they travel. Any thread.
#pragma once

#include "client/session.h"
#include "cuda/driver_types.h"
#include "protocol/texture_request.h"

namespace cuplex::client {

/// Puts a resource into the request; an error where it names no array of this process, or nothing at all.
CUresult RequestOf(Session& session, const CUDA_RESOURCE_DESC& resource, TextureRequest* out);
void AddTexture(const CUDA_TEXTURE_DESC& texture, TextureRequest* out);

}  // namespace cuplex::client
