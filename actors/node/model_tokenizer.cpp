#include "actors/node/model_tokenizer.hpp"

#include <fmt/core.h>

namespace troupe::actors {

namespace {

result<void> check_vocabulary(const cluster_settings& settings,
                              const compute::tokenizer& words,
                              const compute::model& model) {
  const auto ids = words.vocabulary_size();
  const auto rows = model.shape().vocabulary;
  if (ids > rows)
    return error{errc::mismatch,
                 fmt::format("the tokenizer has ids up to {} ('{}'), but the model has {} rows in "
                             "its vocabulary: this is the tokenizer of another model",
                             ids - 1,
                             words.piece(static_cast<token_id>(ids - 1)),
                             rows)};
  if (ids < rows && !settings.model.allow_vocabulary_padding)
    return error{errc::mismatch,
                 fmt::format("the tokenizer has {} ids, but the model has {} rows in its "
                             "vocabulary; if the model is padded on purpose, set "
                             "model.allow_vocabulary_padding = true",
                             ids,
                             rows)};
  return {};
}

} // namespace

result<std::unique_ptr<compute::tokenizer>> open_tokenizer(const cluster_settings& settings,
                                                           const compute::model& model) {
  const auto& elsewhere = settings.model.tokenizer;
  auto words = compute::tokenizer::open(elsewhere.empty() ? model.folder() : elsewhere);
  if (!words)
    return words;
  if (auto fits = check_vocabulary(settings, **words, model); !fits)
    return fits.error();
  return words;
}

} // namespace troupe::actors
