package policy

// version judges what stands beside versions.
func (r rules) version() {
	v := r.consumer.Version
	if v == nil || !r.ok("version") {
		return
	}
	if reason, remedy := split(v.by().Validate(), "write version: {stream: \"body:/order\", number: \"body:/version\"}"); reason != "" {
		r.refuse("version", reason, remedy)
	}
	if r.ok("strategy") && !r.consumer.Strategy.Marks() {
		r.refuse("version", noInbox+": a version whose predecessor is missing could not", "remove it, or write strategy: marker")
	}
	if r.set("dedup") {
		r.refuse("version", "a table that was adopted keeps no streams, and other code that marks in it would move none", "remove it, or dedup; semel migrate seed takes over the ids of such a table")
	}
	if v.Start.FirstSeen {
		r.warn("version.start", "a version that comes later and is smaller than the first that was met is discarded", "write the version that streams begin with, if their beginnings are all in the source")
	}
}
