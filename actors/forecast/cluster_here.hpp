#pragma once
// The cluster of a plan as a forecast sees it, on this host's figures: for `troupe plan` and for
// the last line of `troupe generate`.

#include "actors/forecast/calibration.hpp"
#include "actors/forecast/simulation.hpp"
#include "config/settings.hpp"

namespace troupe::actors {

/// What a message costs its two threads beside the way between them: it is encoded, put into a
/// mailbox and taken out again.
inline constexpr double handling_s = 4e-6;

/// What is taken for links to other hosts, which nobody measured: 10 Gbit/s Ethernet.
inline constexpr link_speed assumed_network{50e-6, 1.1e9};

/// Every host computes as this one does, times the weight of its nodes. `plan` is one of
/// `settings`.
forecast_cluster cluster_like_this_host(const cluster_settings& settings,
                                        const cluster_plan& plan,
                                        const compute::model_shape& shape,
                                        const calibration& figures);

/// Speed of one stream and of as many as the cluster takes at once.
struct rates {
  std::size_t streams = 0;
  std::size_t prompt = 0; ///< Tokens of each prompt.
  std::size_t answer = 0; ///< Tokens of each answer.
  double prompt_tokens_per_s = 0;
  double answer_tokens_per_s = 0; ///< All streams together, after their first tokens.
  double first_token_s = 0;       ///< Mean.
  double bubble = 0;
  double bytes_per_token = 0; ///< Over all boundaries and within all groups, each member's sends.
};

struct forecast {
  rates one;
  rates many;
  double weights_per_s = 0; ///< Of this host: host_speed.hpp.
  std::size_t cores = 1;
};

/// Prompts of 128 and answers of 32 tokens, or less where the context is small.
result<forecast> forecast_rates(const forecast_cluster& cluster);

/// Of one run.
rates rates_of(const simulated_run& run, std::size_t tensor, const offered_load& load);

} // namespace troupe::actors
