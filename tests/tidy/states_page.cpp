#include "tests/tidy/states_page.hpp"

#include "actors/conductor/conductor_phases.hpp"
#include "actors/director/director_phases.hpp"
#include "actors/rank/rank_phases.hpp"

namespace troupe::tidy {

namespace {

constexpr const char* introduction = R"(# States

<!-- Made from actors/*_phases.hpp: cmake --build BUILD --target states_page -->

Three actors decide what happens in a cluster, and each of them is one table: what it does with a
message depends on the phase that it is in and on nothing else. There are no flags beside the
tables; they are checked when they are compiled (every phase can be reached and left, nothing is
held for ever), and this page is printed from them.

A row is a phase, a column is an input. A cell says what happens:

| cell | meaning |
|---|---|
| *a phase* | go there and act |
| stay | act and stay in this phase |
| *hold* | keep the input and offer it again after the next one that is handled |
| drop | the input has lost its meaning (late, or of a pass that was abandoned): forget it |
| – | refuse: the sender broke the order, and is told so |
)";

constexpr const char* rank_text = R"(
## The rank

A rank owns a shard of the weights and its share of the state, and runs passes on them. It comes to
`ready` once in its life if all goes well, and goes round from there once a step: on the first stage
`step_tokens` starts a pass at once, on the others `step_rows` announces it and `partition_input`
brings the rows of the stage before. Entering and leaving the group of its layers are rows of this
table. Whatever goes wrong within an epoch leads to `fenced`: the rank says what happened and waits
for the director, who ends the epoch. The shard stays; the next epoch starts at `loaded`. There, the
inputs of a pass wait for the plan of their epoch: a conductor or a rank of the same process may
have its own already, and has no wire to hear the rank by.

)";

constexpr const char* conductor_text = R"(
## The conductor

The conductor keeps the requests, plans the steps and publishes tokens when a step is committed. It
takes requests only while it serves; when an epoch ends it goes back to `waiting`, with the reason.

)";

constexpr const char* director_text = R"(
## The director

The director brings nodes together, has shards loaded, starts an epoch and ends it when something is
lost. A lost node or epoch leads back to `gathering`; what cannot be mended from there leads to
`failed`, and every process ends with the reason.

)";

} // namespace

std::string states_page() {
  return introduction + (rank_text + actors::rank_phases.to_markdown()) + conductor_text
         + actors::conductor_phases.to_markdown() + director_text
         + actors::director_phases.to_markdown();
}

} // namespace troupe::tidy
