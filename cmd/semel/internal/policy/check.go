package policy

import (
	"fmt"
	"strings"
)

// check finds what is wrong between keys, each by itself right.
func check(d *decoder, p *Policy) {
	stdin := map[string]string{}
	for _, c := range p.Consumers {
		at := "consumers." + c.Name
		if c.Retry.Most == 0 {
			c.Retry.Most = c.Hold
		}
		p.checkReferences(d, c, at)
		_ = stdin
	}
}

func (p *Policy) checkReferences(d *decoder, c *Consumer, at string) {
	if c.From != "" && p.Source(c.From) == nil {
		d.faultAt(at+".from", fmt.Sprintf("there is no source %q", c.From), "the sources are "+names(p.Sources, func(s *Source) string { return s.Name }))
	}
	if c.Store != "" && p.Store(c.Store) == nil {
		d.faultAt(at+".store", fmt.Sprintf("there is no store %q", c.Store), "the stores are "+names(p.Stores, func(s *Store) string { return s.Name }))
	}
}

func names[T any](all []*T, name func(*T) string) string {
	var list []string
	for _, v := range all {
		list = append(list, name(v))
	}
	return strings.Join(list, ", ")
}
