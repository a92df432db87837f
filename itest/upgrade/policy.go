//go:build unix

package upgrade

import (
	"cmp"
	"fmt"
)

// policy is one for both releases, but for faults that are planted. The effect
// log has no unique key: nothing but Semel keeps a second effect out.
const policy = `version: 1
stores:
  counts:
    %s
sources:
  feed:
    %s
consumers:
  counter:
    from: feed
    store: counts
    strategy: marker
    identity: {id: "header:id", source: "const:%s"}
    fingerprint: %s
    batch: {max_size: %d}
    handler:
      sql:
        params: {id: "header:id", release: "const:${RELEASE}", amount: "body:/amount"}
        statements:
          - sql: insert into effects (id, release) select :id, :release where cast(:amount as bigint) > 0 or exists (select 1 from gate)
            rows: 1
`

// The names that a release uses for which nothing is planted.
const (
	prefix      = "semel_"
	scope       = "shop"
	fingerprint = "body"
)

// What the test makes before any release runs: the log, and what is empty until
// parked messages may pass.
const (
	effectLog = `create table effects (id text not null, release text not null)`
	gateTable = `create table gate (open integer not null)`
)

// text is the policy of a release for a reader. With follow its run never ends by
// itself, and its batches are small, so that a kill meets one of many.
func (r Release) text(p *Proof, reader string, follow bool) []byte {
	batch := 500
	if follow {
		batch = 5
	}
	return fmt.Appendf(nil, policy, p.Store.Policy(cmp.Or(r.Plant.Prefix, prefix)), p.Source.Policy(reader, follow),
		scope, cmp.Or(r.Plant.Fingerprint, fingerprint), batch)
}
