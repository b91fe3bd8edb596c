// RecordPrint: a record of a load as the lines of CSV that cuplex-simulate reads. Any thread.
#pragma once

#include <string>

#include "protocol/control_generated.h"

namespace cuplex::tools {

/// A line for each piece of work, without the line of columns. Every row's tenant is among the names.
std::string PrintRecord(const control::Record& record);

}  // namespace cuplex::tools
