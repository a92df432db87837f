package planted

import "github.com/semel-go/semel/internal/simulator"

// ofSteps are faults of messages of several steps.
func ofSteps() []Fault {
	inSteps := func(name, law, file, before, after string) Fault {
		return Fault{Name: name, Law: law, File: file, Old: before, New: after, Mode: simulator.Steps}
	}
	return []Fault{
		inSteps("a step that is done runs again", "C11", "internal/steps/steps.go",
			"return len(done) }", "return max(len(done)-1, 0) }"),
		inSteps("what follows steps of other names goes on", "C11", "internal/steps/steps.go",
			"i == len(names) || names[i] != done[i].Name", "i == len(names)"),
		inSteps("the last step is not waited for", "C11", "internal/steps/steps.go",
			"return len(done) < len(names) }", "return len(done)+1 < len(names) }"),
		inSteps("of the steps that are done the last is remembered", "C11", "internal/steps/steps.go",
			"append(slices.Clip(done), ", "append(done[:0:0], "),
		inSteps("a message is done with its first step", "C11", "internal/machine/commit.go",
			"en.As == AsApplied && c != nil && c.stepped {", "en.As == AsApplied && c == nil {"),
		inSteps("after a step nobody asks for the next one", "D3", "internal/machine/commit.go",
			"\tcase source.EndReceived, source.EndStepped:\n", "\tcase source.EndReceived:\n"),
		inSteps("a step of a claim that is lost commits late", "law 5", "internal/simulator/commit.go",
			"\t\t\tf.lateStep()\n", "\t\t\tf.apply(a)\n"),
		inPackage("a run that is taken back changes what is done", "C11", "internal/steps/steps.go",
			"append(slices.Clip(done), ", "append(done, ", "./internal/steps", "TestOneMore/C11_a_run_that_is_taken_back_changes_nothing"),
		inShell("versions of a stream with steps share a batch", "B9", "consumer/steps.go",
			"return c.steps != nil && c.Version != nil }", "return false }",
			"TestTheOrderOfStepsInAStream/B9_C11_the_next_version_begins_after_the_last_step_of_the_one_before"),
	}
}
