package policy

// The table of the flight recorder.

// Recorder says whether `semel run` records what its consumers decide.
type Recorder struct {
	// Folder is where recordings are written, resolved; empty: nothing is recorded.
	Folder string
	// Size is how many bytes the recording of a consumer takes.
	Size int64
	// IDs says that messages are recorded by their names.
	IDs bool
}

func recorderShape() object[Recorder] {
	return object[Recorder]{fields: []field[Recorder]{
		key(meta{name: "folder", required: true, doc: "Where recordings are written, relative to the policy file. It must exist."},
			path{word: word{what: "a path"}}, func(r *Recorder) *string { return &r.Folder }),
		key(meta{name: "size", def: "8MiB", doc: "About how much memory the recording of one consumer takes at most. What it decided last is kept, about 260 bytes a message, so that this is how far back it goes: at 1,000 messages a second, 8 MiB are half a minute."},
			size{least: 64 << 10, most: 1 << 30}, func(r *Recorder) *int64 { return &r.Size }),
		key(meta{name: "ids", def: "false", doc: "Record identities, sources, streams and the reasons of handlers as they are. Otherwise they stand there as hashes that nobody can look up."},
			boolean{}, func(r *Recorder) *bool { return &r.IDs }),
	}}
}
