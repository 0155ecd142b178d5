// holmes list: the models in the local store.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "app/command.h"
#include "hub/store.h"

namespace holmes::app {
namespace {

class ListCommand final : public Command {
 public:
  void AddOptions(OptionTable&) override {}

  Status Run() override {
    const hub::Store store(hub::DefaultStoreDir());
    const auto models = store.List();
    if (models.empty()) {
      fmt::print(stderr, "the model store {} is empty\n", store.dir());
      return OkStatus();
    }
    std::size_t width = 0;
    for (const hub::StoredModel& model : models) width = std::max(width, model.id.size());
    for (const hub::StoredModel& model : models) {
      fmt::print("{:<{}}  {:>9.1f} MB  {}\n",
                 model.id,
                 width,
                 static_cast<double>(model.size_bytes) / 1e6,
                 model.path);
    }
    return OkStatus();
  }
};

}  // namespace

std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }

}  // namespace holmes::app
