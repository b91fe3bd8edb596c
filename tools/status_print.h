// A server's status, as a table for people and as JSON for programs. Pure; any thread.
#pragma once

#include <string>

#include "protocol/control_generated.h"

namespace cuplex::tools {

/// A heading line, one row for each tenant and device, and one for each session. With `before`, an earlier
/// status of the same server, launches a second and the share of device time since then as well; where the
/// server is another one or no time has passed, "-". Ends with a newline.
std::string PrintTable(const control::Status& now, const control::Status* before);

/// One JSON object, its keys named as in protocol/control.fbs. Ends with a newline.
std::string PrintJson(const control::Status& status);

/// `text` as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD.
std::string PrintJsonString(std::string_view text);

}  // namespace cuplex::tools
