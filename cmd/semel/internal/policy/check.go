package policy

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// check reports invalid combinations of valid keys. A rule reads only keys without faults, so each mistake
// is reported once.
func check(d *shape.Decoder, p *Policy) {
	p.checkSources(d)
	p.checkKeyStores(d)
	for _, c := range p.Consumers {
		r := rules{rulePath: rulePath{d, "consumers." + c.Name}, consumer: c, store: p.Store(c.Store)}
		if d.Faulty(r.path) {
			continue
		}
		r.checkReferences(p)
		r.checkSender()
		r.checkFilter()
		r.checkFilterMatch(p.Source(c.From))
		r.checkMaxBody(p.Source(c.From))
		r.checkIdentity()
		r.checkStrategy()
		r.checkOutsideCall(p.Source(c.From))
		r.checkEffect()
		r.checkStoreDown()
		r.checkRetention(p.Source(c.From), p.Store(c.Store))
		r.checkFingerprint()
		r.checkDedup(p)
		r.checkVersion()
		r.checkSteps()
		r.checkInbox()
		r.checkKeyLanes(p.Source(c.From))
		r.checkDurations()
		r.checkKeyStore()
		r.checkDeadLetters(p.Source(c.From))
		r.checkKafka(p.Source(c.From))
		r.checkWebhookSource(p.Source(c.From))
		r.checkHandler(p.Store(c.Store))
		r.checkAnswers(p, p.Store(c.Store))
		r.checkIntents(p)
		r.checkReEmission(p)
		r.checkReplay(p.Source(c.From))
		r.report(r.configError())
	}
	p.checkListen(d)
	p.checkStandardInput(d)
	p.checkGroups(d)
	p.checkWebhooks(d)
	p.checkLetters(d)
	p.checkUse(d)
}

func (p *Policy) checkSources(d *shape.Decoder) {
	for _, s := range p.Sources {
		at := "sources." + s.Name + ".file"
		if s.File != nil && s.File.Path == shape.Stdin && s.File.Follow && d.Sound(at) {
			d.FaultAt(at+".follow", "standard input cannot be followed: it ends when its writer ends", "remove follow")
		}
		if s.Kafka != nil {
			kafkaRules{rulePath{d, "sources." + s.Name + ".kafka"}, s.Kafka}.check()
		}
		if s.Webhook != nil {
			webhookRules{rulePath{d, "sources." + s.Name + ".webhook"}, s.Webhook}.check()
		}
	}
}

// checkStandardInput rejects policies in which several consumers read standard input, because only one
// consumer would get each line.
func (p *Policy) checkStandardInput(d *shape.Decoder) {
	reader := ""
	for _, c := range p.Consumers {
		s := p.Source(c.From)
		if s == nil || s.File == nil || s.File.Path != shape.Stdin {
			continue
		}
		if reader != "" {
			d.FaultAt("consumers."+c.Name+".from", fmt.Sprintf("consumer %s also reads standard input, and each line reaches only one of them", reader),
				"write the input to a file, which several consumers can read, or remove one consumer")
		}
		reader = c.Name
	}
}

// checkUse warns about stores and sources that no consumer uses.
func (p *Policy) checkUse(d *shape.Decoder) {
	used := map[string]bool{}
	for _, c := range p.Consumers {
		used["sources."+c.From], used["stores."+c.Store] = true, true
	}
	for _, s := range p.Sources {
		p.warnUnused(d, used, "sources."+s.Name)
	}
	for _, s := range p.Stores {
		p.warnUnused(d, used, "stores."+s.Name)
	}
}

func (p *Policy) warnUnused(d *shape.Decoder, used map[string]bool, path string) {
	if !used[path] {
		d.WarnAt(path, "no consumer uses it", "remove it, or use it in a consumer")
	}
}

func namesOf[T any](all []*T, name func(*T) string) []string {
	var list []string
	for _, v := range all {
		list = append(list, name(v))
	}
	return list
}

// unknownName returns the remedy for a reference to a name that does not exist.
func unknownName(name, what string, known []string) string {
	if len(known) == 0 {
		return "add it under " + what
	}
	if near := shape.NearestWord(name, known); near != "" {
		return fmt.Sprintf("did you mean %s? The %s are %s", near, what, strings.Join(known, ", "))
	}
	return fmt.Sprintf("the %s are %s", what, strings.Join(known, ", "))
}
