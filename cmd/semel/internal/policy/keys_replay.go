package policy

import "time"

func replayShape() object[Replay] {
	return object[Replay]{fields: []field[Replay]{
		key(meta{name: "allowed", doc: "Whether they may be. The default is `true` for an `effect` of the kinds `projection`, `cache` and `audit_copy` that calls nobody, otherwise `false`."},
			boolean{}, func(r *Replay) *bool { return &r.Allowed }),
		key(meta{name: "effects", def: "none", doc: "What a replay may do outside of the store: with `none` intents are written down as `suppressed`, and are not sent unless somebody says so (`semel intents send`); with `real` they are sent, and endpoints are called as ever. A consumer that calls an endpoint itself may write `none` with `looks` only."},
			choice[bool]{options: []option[bool]{{word: "none", value: false}, {word: "real", value: true}}}, func(r *Replay) *bool { return &r.Effects }),
		key(meta{name: "max_age", doc: "How old a message may be that is replayed; older ones are left out and counted. It must not exceed `retention`, which is the default: of an older message nobody knows whether it took effect."},
			span{least: time.Minute, most: longestKeep}, func(r *Replay) *time.Duration { return &r.MaxAge }),
		key(meta{name: "looks", def: "false", doc: "That the endpoint of `handler.http` looks whether effects are allowed: each request of a replay has the header `semel-replay` with its number, and `semel-effects: none` or `real`."},
			boolean{}, func(r *Replay) *bool { return &r.Looks }),
	}}
}
