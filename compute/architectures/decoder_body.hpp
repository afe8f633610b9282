#pragma once
// A decoder's layers on a device: what one rank owns of them.

#include "compute/architectures/architecture.hpp"
#include "compute/architectures/decoder_spec.hpp"
#include "compute/weights/shard_loader.hpp"
#include "config/result.hpp"

#include <memory>

namespace troupe::compute {

result<std::unique_ptr<partition_body>> load_decoder_body(const decoder_spec& spec,
                                                          const partition_record& record,
                                                          shard_loader& loader,
                                                          device& where);

} // namespace troupe::compute
