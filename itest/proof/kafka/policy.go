//go:build unix

package kafka

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/itest/proof"
)

// The table of effects has an additional column that records which member wrote a row.
const setup = proof.Setup + `alter table effects add member text not null default current_setting('application_name');
`

// The policies differ only in whether the member is static. A member reads its name from its environment.
const (
	dynamicPolicy = "dynamic.yaml"
	staticPolicy  = "static.yaml"
)

func (r *run) writePolicies() {
	p := proof.Policy{Store: `postgres: {url: "${DATABASE}"}`, Identity: `{id: "header:ce-id", source: "header:ce-source"}`,
		ID: "header:ce-id", Type: "header:ce-type", Batch: r.Batch, Timeout: timeout}
	if r.Plant == "natural" {
		p.Strategy = `{natural: {because: "it is planted"}}`
	}
	protocol := fmt.Sprintf("session_timeout: %s", r.Session)
	if r.NextGen {
		protocol = "protocol: next_gen"
	}
	if r.Inbox {
		p.Strategy, p.More = "inbox", proof.InboxKeys()
	}
	if r.Order {
		p.More = r.orderKeys()
		if r.Keys {
			p.Strategy = "inbox"
		}
		if r.Plant == "unguarded" {
			p.More = slices.DeleteFunc(p.More, func(key string) bool { return strings.HasPrefix(key, "version:") || key == "lanes: key" })
		}
	}
	for file, instance := range map[string]string{dynamicPolicy: "", staticPolicy: `, instance: "${MEMBER}"`} {
		p.Source = fmt.Sprintf(`kafka: {brokers: "%s", topics: [%s], group: %s, %s%s}`, strings.Join(r.Cluster.Brokers(), ","), topic, group, protocol, instance)
		r.Write(file, p.Text())
	}
}
