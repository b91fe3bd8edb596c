#include "server/options.h"

#include <sstream>

#include <boost/program_options.hpp>

#ifndef CUPLEX_VERSION
#define CUPLEX_VERSION "0"
#endif

namespace cuplex::server {

namespace po = boost::program_options;

Result<CommandLine> ReadCommandLine(int argc, const char* const* argv) try {
  CommandLine line;
  Options& o = line.options;
  po::options_description described(
      "cuplexd shares CUDA devices among tenants, as a policy file says.\n\nOptions", 110);
  auto add = described.add_options();
  add("policy,p", po::value(&o.policy)->value_name("FILE"), "the policy: devices and tenants; required");
  add("driver,d", po::value(&o.driver)->value_name("auto|PATH")->default_value(o.driver),
      "the CUDA driver that runs the work; auto: NVIDIA's where it loads and has a device, else softcuda");
  add("soft-driver", po::value(&o.soft_driver)->value_name("PATH"),
      "where softcuda lies; default: beside this program, in ../soft or ../lib");
  add("run-dir,r", po::value(&o.run_dir)->value_name("DIR"),
      "the folder of the sockets, in place of the policy's");
  add("job-threads", po::value(&o.job_threads)->value_name("N")->default_value(o.job_threads),
      "threads for slow driver calls, 1 to 64");
  add("stop-seconds", po::value(&o.stop_seconds)->value_name("N")->default_value(o.stop_seconds),
      "how long SIGTERM waits for sessions to end, 1 to 600");
  add("check", po::bool_switch(&o.check), "only read the policy, and say whether it is good");
  add("version", "print the version");
  add("help,h", "print this");
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(described).run(), given);
  po::notify(given);
  if (given.count("help")) {
    std::ostringstream text;
    text << "Usage: cuplexd --policy FILE [options]\n"
         << described
         << "\nSignals: SIGHUP reads the policy again, SIGTERM and SIGINT stop the server.\n"
            "Exit status: 0 stopped as asked; 1 it could not go on; 2 the command line or the policy is "
            "wrong.\n";
    line.text = text.str();
    return line;
  }
  if (given.count("version")) {
    line.text = "cuplexd " CUPLEX_VERSION "\n";
    return line;
  }
  if (o.policy.empty()) return Fail(Blame::kCaller, "No policy was given; --policy FILE was expected.");
  if (!o.run_dir.empty() && o.run_dir[0] != '/')
    return Fail(Blame::kCaller, "The run folder \"{}\" was given; an absolute path was expected.", o.run_dir);
  if (o.job_threads < 1 || o.job_threads > 64)
    return Fail(Blame::kCaller, "{} job threads were asked for; 1 to 64 were expected.", o.job_threads);
  if (o.stop_seconds < 1 || o.stop_seconds > 600)
    return Fail(Blame::kCaller, "{} seconds to stop were given; 1 to 600 were expected.", o.stop_seconds);
  return line;
} catch (const po::error& e) {
  return Fail(Blame::kCaller, "The command line is not understood: {}; see --help.", e.what());
}

}  // namespace cuplex::server
