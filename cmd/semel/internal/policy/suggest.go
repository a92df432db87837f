package policy

import "strings"

// Command returns a command of semel for this policy that a person can type as it stands.
func (p *Policy) Command(words ...string) string {
	if p.Suggest == nil {
		return "semel " + strings.Join(words, " ")
	}
	return p.Suggest(words...)
}
