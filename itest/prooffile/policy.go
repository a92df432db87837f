//go:build unix

package prooffile

import (
	"fmt"
	"os"
	"path/filepath"
)

// The files of a proof, all in one folder.
const (
	policyFile   = "semel.yaml"
	setupFile    = "setup.sql"
	inputFile    = "webhooks.jsonl"
	databaseFile = "counts.db"
	logFile      = "semel.log"
	summaryFile  = "summary.json"
)

const policy = `version: 1
stores:
  counts:
    %s
    migrate: true
    setup: setup.sql
sources:
  webhooks:
    file: {path: %s, format: envelope, follow: %t}
consumers:
  counter:
    from: webhooks
    store: counts
    strategy: marker
    identity: {id: "header:X-GitHub-Delivery"}
    batch: {most: %d}
    timeout: %s
    handler:
      sql:
        params:
          delivery: "header:X-GitHub-Delivery"
          type: "header:X-GitHub-Event"
          repository: "body:/repository/full_name?"
        statements:
          - insert into counters (type, repository, n) values (:type, coalesce(:repository, ''), 1)
            on conflict (type, repository) do update set n = counters.n + 1
          - insert into effects (delivery, type, repository) values (:delivery, :type, coalesce(:repository, ''))
`

// The log has no unique key: an effect that happens twice stands in it twice.
const setup = `create table counters (
    type text not null, repository text not null, n integer not null,
    primary key (type, repository)
) strict;
create table effects (
    delivery text not null, type text not null, repository text not null
) strict;
`

// writePolicy writes the policy. With follow the process never ends by itself.
func writePolicy(folder string, batch int, follow bool) error {
	return os.WriteFile(filepath.Join(folder, policyFile),
		fmt.Appendf(nil, policy, "sqlite: {path: "+databaseFile+"}", inputFile, follow, batch, "30s"), 0o644)
}

func writeSetup(folder, text string) error {
	return os.WriteFile(filepath.Join(folder, setupFile), []byte(text), 0o644)
}
