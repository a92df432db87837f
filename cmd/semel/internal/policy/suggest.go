package policy

import "strings"

// Command returns a complete command of semel for this policy, which a person can type.
func (p *Policy) Command(words ...string) string {
	if p.Suggest == nil {
		return "semel " + strings.Join(words, " ")
	}
	return p.Suggest(words...)
}
