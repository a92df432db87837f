package policy

import (
	"strings"

	"github.com/semel-go/semel/kafka"
)

// Risk is what a policy has taken upon itself. The set of names is closed.
type Risk struct {
	// Name is a word for monitors, Says the risk to people.
	Name, Says string
}

// The names of risks.
const (
	RiskMayDouble     = "may double"
	RiskMayBeLost     = "may be lost"
	RiskWithoutKey    = "without key"
	RiskLateCopies    = "late copies"
	RiskUncompared    = "uncompared"
	RiskRecordsPassed = "records passed by"
	RiskUnsigned      = "unsigned"
)

// Risks are those that a consumer has declared.
func (p *Policy) Risks(c *Consumer) (all []Risk) {
	add := func(is bool, name, says string) {
		if is {
			all = append(all, Risk{name, says})
		}
	}
	if h := c.Handler.HTTP; h != nil {
		add(h.MayDouble != "", RiskMayDouble, "calls may double: "+h.MayDouble)
		add(h.MayBeLost != "", RiskMayBeLost, "calls may be lost: "+h.MayBeLost)
	}
	add(c.FailOpen, RiskWithoutKey, "while Redis is down messages are applied without a key")
	add(c.Strategy.Natural != nil, RiskLateCopies, "late copies are applied again")
	add(c.Identity.Previous != nil && c.Identity.Previous.TrustUnfingerprinted, RiskUncompared, "under the former identity what cannot be compared counts as a copy")
	if s := p.Source(c.From); s != nil && s.Webhook != nil {
		u := s.Webhook.Unsigned
		add(len(u.Headers) > 0, RiskUnsigned, "nobody signed the headers "+strings.Join(u.Headers, ", ")+": "+u.Because)
	}
	if s := p.Source(c.From); s != nil && s.Kafka != nil {
		add(s.Kafka.OnLostRecords == kafka.GoOn, RiskRecordsPassed, "records that the broker has lost are passed by")
	}
	return all
}
