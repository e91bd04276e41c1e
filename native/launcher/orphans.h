// Without a pid namespace nobody ends what a guest left behind but its subreaper.
#pragma once

namespace ringfence {

// Kills and reaps every process below this one, which must be a subreaper: what a killed one leaves comes up to it.
void KillOrphans();

} // namespace ringfence
