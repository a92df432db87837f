package command

import "github.com/spf13/pflag"

// explainedBy is the key of the annotation of a flag that another command's help explains.
const explainedBy = "semel_explained_by"

// OnlyName has the help of a command give the name of a flag and the command that explains it, not what
// it means.
func OnlyName(f *pflag.Flag, command string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[explainedBy] = []string{command}
}

// ExplainedBy returns the command of OnlyName; empty: the help explains the flag.
func ExplainedBy(f *pflag.Flag) string {
	if by := f.Annotations[explainedBy]; len(by) > 0 {
		return by[0]
	}
	return ""
}
