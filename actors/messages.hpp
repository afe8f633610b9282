#pragma once
// The vocabulary: every message, every typed actor interface, every type id. Messages are nouns.
//
// Three kinds of road:
//   data     rank to rank and conductor to rank, over UCX (actors/wires/peer, actors/wires/codec)
//   control  node to director and client to gateway, over CAF between processes
//   local    within a process; these may carry handles and buffers

#include "actors/messages/clients.hpp"
#include "actors/messages/faults.hpp"
#include "actors/messages/local.hpp"
#include "actors/messages/membership.hpp"
#include "actors/messages/observing.hpp"
#include "actors/messages/steps.hpp"
#include "compute/buffer.hpp"

namespace troupe::actors {

/// One rank: a shard of the model with its state. Lives on its own reactor.
using rank_actor =
  caf::typed_actor<reacts_to<shard_assignment>, // load
                   reacts_to<epoch_plan>,       // meet the neighbours
                   reacts_to<peers_heard>,      // all neighbours proved themselves
                   reacts_to<state_manifest>,   // layers that another rank held come here
                   reacts_to<state_page, compute::buffer>, // a page of them
                   reacts_to<step_tokens>,                 // a step, where this rank owns input
                   reacts_to<step_rows>,                   // a step, elsewhere
                   reacts_to<rows_again>,                  // the next stage rebuilds its state
                   reacts_to<slots_released>,              // sequences that ended
                   reacts_to<partition_input, compute::buffer>, // the boundary of the stage before
                   reacts_to<unit_due>,                         // one more unit
                   reacts_to<group_leave>,                      // after the last unit
                   reacts_to<pass_finish>,                      // publish
                   reacts_to<peer_down>,                        // a neighbour is gone
                   reacts_to<fence>,                            // the epoch is over
                   reacts_to<fault_order>,                      // something is to go wrong
                   reacts_to<trace_order>,                      // note the next steps
                   reacts_to<node_stop>>;                       // the process ends

/// Plans steps, keeps every live request, publishes tokens. Lives on its own reactor.
using conductor_actor = caf::typed_actor<
  reacts_to<epoch_plan>,  // serve with these ranks
  reacts_to<peers_heard>, // they are all connected
  reacts_to<state_held>,  // what a rank brings into a new plan
  caf::replies_to<generate_request, caf::strong_actor_ptr>::with<request_id>, // queue a request
  caf::replies_to<stream_attach, caf::strong_actor_ptr>::with<request_id>,    // go on with one
  reacts_to<request_cancel>,                                                  // forget one
  reacts_to<step_output>,                                                     // a step is committed
  reacts_to<peer_down>,   // a rank's wires are gone
  reacts_to<fence>,       // the epoch is over
  reacts_to<fault_order>, // something is to go wrong
  reacts_to<trace_order>, // note the next steps
  reacts_to<tick>,        // deadlines
  reacts_to<node_stop>>;  // drain and end

/// What runs in a process: its ranks, and its word to the director.
using node_actor = caf::typed_actor<reacts_to<node_assignment>, // director: host these ranks
                                    reacts_to<epoch_plan>,      // director: a plan begins
                                    reacts_to<fence>,           // director: a plan is over
                                    reacts_to<beat_heard>,      // director: it is there
                                    // run_node: a head again, after one was lost; its door
                                    reacts_to<node_welcome, caf::strong_actor_ptr>,
                                    reacts_to<rank_loaded>,  // rank: loaded
                                    reacts_to<rank_rewired>, // rank: has new wires
                                    reacts_to<rank_joined>,  // rank: connected
                                    reacts_to<rank_fault>,   // rank: cannot go on
                                    reacts_to<fault_order>,  // director: for ranks
                                    reacts_to<trace_order>,  // director: likewise
                                    reacts_to<trace_part>,   // rank: for the director
                                    reacts_to<tick>,         // beat
                                    reacts_to<node_stop>>;   // end in good order

/// Membership, plan, epochs. One in a cluster, on the head.
using director_actor =
  caf::typed_actor<caf::replies_to<node_hello, node_actor>::with<node_welcome>, // a node joins
                   reacts_to<rank_loaded>,                                      // a shard is there
                   reacts_to<rank_rewired>,                                     // it has new wires
                   reacts_to<rank_joined>, // a rank is connected
                   reacts_to<rank_fault>,  // a rank or the conductor gave up
                   reacts_to<node_beat>,   // progress
                   caf::replies_to<terms_query>::with<cluster_terms>,   // a stranger asks
                   caf::replies_to<status_query>::with<cluster_status>, // for people
                   reacts_to<node_drain>,                               // go on without it
                   caf::replies_to<fault_order>::with<fault_receipt>,   // for tests
                   caf::replies_to<trace_order>::with<trace_report>,    // for people
                   reacts_to<trace_part>,                               // a share of it
                   reacts_to<tick>,                                     // deadlines
                   reacts_to<cluster_stop>>;                            // end in good order

/// The door of the cluster: the one actor that is published on the head's control port.
using gateway_actor =
  caf::typed_actor<caf::replies_to<node_hello, node_actor>::with<node_welcome>,
                   caf::replies_to<generate_request, caf::strong_actor_ptr>::with<request_id>,
                   caf::replies_to<stream_attach, caf::strong_actor_ptr>::with<request_id>,
                   reacts_to<request_cancel>,
                   caf::replies_to<terms_query>::with<cluster_terms>,
                   caf::replies_to<status_query>::with<cluster_status>,
                   reacts_to<node_drain>,
                   caf::replies_to<fault_order>::with<fault_receipt>,
                   caf::replies_to<trace_order>::with<trace_report>,
                   reacts_to<cluster_stop>>;

/// Whoever asked for text.
using client_actor = caf::typed_actor<reacts_to<text_piece>, reacts_to<request_end>>;

} // namespace troupe::actors

CAF_BEGIN_TYPE_ID_BLOCK(troupe, first_custom_type_id)

  CAF_ADD_TYPE_ID(troupe, (troupe::compute::buffer))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::step_tokens))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::step_rows))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::slots_released))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::partition_input))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::step_output))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_hello))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_welcome))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::shard_assignment))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_assignment))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::rank_loaded))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::epoch_plan))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::rank_joined))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::rank_fault))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::fence))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_beat))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_stop))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::generate_request))
  CAF_ADD_TYPE_ID(troupe, (troupe::request_id))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::text_piece))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::request_end))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::request_cancel))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::status_query))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::cluster_status))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::cluster_stop))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::unit_due))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::group_leave))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::pass_finish))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::peers_heard))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::peer_down))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::tick))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_actor))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::director_actor))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::gateway_actor))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::rank_rewired))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::rows_again))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::beat_heard))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::node_drain))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::stream_attach))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::fault_order))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::fault_receipt))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::trace_order))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::trace_part))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::trace_report))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::state_manifest))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::state_page))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::state_held))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::terms_query))
  CAF_ADD_TYPE_ID(troupe, (troupe::actors::cluster_terms))

CAF_END_TYPE_ID_BLOCK(troupe)

// A buffer is handed over by reference within a process; between processes the codec carries it.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::compute::buffer)
