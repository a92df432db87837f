//go:build linux

package proofkafka

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// policy is of a member; its name stands in the connection string.
const policy = `version: 1
stores:
  counts:
    postgres: {url: "${DATABASE}"}
    migrate: true
    setup: setup.sql
sources:
  webhooks:
    kafka: {brokers: "%s", topics: [%s], group: %s, %s%s}
consumers:
  counter:
    from: webhooks
    store: counts
    strategy: %s
    identity: {id: "header:ce-id", source: "header:ce-source"}
    batch: {most: %d}
    timeout: %s
    handler:
      sql:
        params:
          delivery: "header:ce-id"
          type: "header:ce-type"
          repository: "body:/repository/full_name?"
        statements:
          - insert into counters (type, repository, n) values (:type, coalesce(:repository, ''), 1)
            on conflict (type, repository) do update set n = counters.n + 1
          - insert into effects (delivery, type, repository) values (:delivery, :type, coalesce(:repository, ''))
`

// setup: an effect that happens twice stands in the log twice. Each row also
// says which member wrote it.
const setup = `create table counters (
    type text not null, repository text not null, n bigint not null,
    primary key (type, repository)
);
create table effects (
    delivery text not null, type text not null, repository text not null,
    member text not null default current_setting('application_name')
);
`

// The policies differ in whether the member is static.
const (
	dynamicPolicy = "dynamic.yaml"
	staticPolicy  = "static.yaml"
)

func (r *run) writePolicies() error {
	strategy := "marker"
	if r.Plant == "natural" {
		strategy = `{natural: {because: "it is planted"}}`
	}
	protocol := fmt.Sprintf("session_timeout: %s", r.Session)
	if r.NextGen {
		protocol = "protocol: next_gen"
	}
	for file, instance := range map[string]string{dynamicPolicy: "", staticPolicy: `, instance: "${MEMBER}"`} {
		text := fmt.Appendf(nil, policy, strings.Join(r.kafka.Brokers(), ","), topic, group, protocol, instance, strategy, r.Batch, timeout)
		if err := os.WriteFile(filepath.Join(r.Folder, file), text, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.Folder, "setup.sql"), []byte(setup), 0o644)
}
