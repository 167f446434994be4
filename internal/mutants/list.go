package main

// mutants are the safeguards that a loss of rows depends on.
var mutants = []mutant{
	{
		name: "commit: token check removed",
		file: "multipart/proof.go", old: "case o.Token != e.token:", new: "case false:",
		pkg: "./multipart", test: "TestCommit_AnotherObjectAtTheKeyIsForeignAndStays",
	},
	{
		name: "commit: no look after Complete",
		file: "multipart/commit.go",
		old:  "	object, v, err := u.inspect(ctx)\n	if v == ours {",
		new:  "	if cause == nil {\n		return u.finish(Object{}), nil\n	}\n	object, v, err := u.inspect(ctx)\n	if v == ours {",
		pkg:  "./multipart", test: "TestCommit_A200WithNoObjectIsAClaimAndNotAProof",
	},
	{
		name: "commit of many files: what a listing shows is not compared",
		file: "multipart/publish.go", old: "|| trimETag(etag) != u.claimed || size != u.expect().size:", new: "|| etag == \"\":",
		pkg: "./sink", test: "TestBulkProof_AnObjectReplacedByAForeignOneIsCaught",
	},
	{
		name: "commit of many files: no listing after the answers",
		file: "sink/bulkproof.go",
		old:  "claimed[i] = err == nil && !proven; !claimed[i] {",
		new:  "err == nil && !proven {\n			object, _ = due[i].upload.Listed(due[i].upload.Offset(), due[i].upload.ClaimedETag())\n		}\n		if true {",
		pkg:  "./sink", test: "TestBulkProof_A200WithNoObjectIsCaught",
	},
	{
		name: "going back: what was published is not taken back",
		file: "sink/rewind.go",
		old:  "		if err := s.fs.Delete(ctx, s.recordPath(key)); err != nil {",
		new:  "		if err := ctx.Err(); err != nil || key == \"\" {",
		pkg:  "./e2e/job", test: "TestRewrite_AtACommit",
	},
	{
		name: "going back: numbers in between are left free",
		file: "sink/rewind.go",
		old:  "		if err := s.emptyRecord(ctx, between); err != nil {",
		new:  "		if err := s.fs.Delete(ctx, s.recordPath(RecordKey(s.path.Key, s.job, s.shard, int64(between)))); err != nil {",
		pkg:  "./sink", test: "TestGoBack_TheNumbersInBetweenStayTaken",
	},
	{
		name: "going back: keys that are taken back are used again",
		file: "sink/restore.go", old: "		files = s.renamed(files)\n", new: "",
		pkg: "./sink", test: "TestGoBack_AKeyThatIsTakenBackIsNotUsedAgain",
	},
	{
		name: "going back: a run that was replaced goes back all the same",
		file: "checkpoint/rewind.go", old: "	} else if now != after {", new: "	} else if now < 0 {",
		pkg: "./checkpoint", test: "TestRewind_OfARunThatWasReplaced_ChangesNothingAndFencesNobody",
	},
	{
		name: "dispose: the upload is aborted",
		file: "multipart/upload.go",
		old:  "func (u *Upload) Abandon() {\n",
		new:  "func (u *Upload) Abandon() {\n	_ = u.api.Abort(context.Background(), u.target, u.UploadID())\n",
		pkg:  "./sink", test: "TestRestore_RowsAfterTheCheckpointAreForgottenAndComeAgain|TestSink_CloseWithOpenFilesPublishesAndAbortsNothing",
	},
	{
		name: "checkpoint: tails are not stored",
		file: "multipart/capture.go", old: "	if c.tail.size > 0 {", new: "	if false {",
		pkg: "./sink", test: "TestRestore_TailsOfSmallFilesSurvive",
	},
	{
		name: "checkpoint: pending files are not carried",
		file: "sink/snapshot.go",
		old:  "	for _, p := range s.pending {\n		snap.files = append(snap.files, captureFile(p))\n	}\n", new: "",
		pkg: "./sink", test: "TestRestore_ACrashAtAnyCallOfACommitPublishesEachRowOnce",
	},
	{
		name: "checkpoint directory: manifest not synced",
		file: "checkpoint/dirmanifests.go", old: "		err = f.Sync()\n", new: "		err = nil\n",
		pkg: "./checkpoint", test: "TestCrash_OfTheMachineAtEveryFileOperation_LosesNoSavedCheckpoint",
	},
	{
		name: "checkpoint directory: directory not synced",
		file: "checkpoint/dirmanifests.go",
		old:  "	if err := d.fs.SyncDir(d.path); err != nil {\n		return fmt.Errorf(\"%s: %w: sync directory: %w\", path, ErrAmbiguous, err)\n	}\n", new: "",
		pkg: "./checkpoint", test: "TestCrash_OfTheMachineAtEveryFileOperation_LosesNoSavedCheckpoint",
	},
	{
		name: "checkpoint directory: no fencing",
		file: "checkpoint/dirmanifests.go",
		old:  "	case l.epoch() != epoch:\n		return fmt.Errorf(\"this run has epoch", new: "	case false:\n		return fmt.Errorf(\"this run has epoch",
		pkg: "./checkpoint", test: "TestSave_WhenTheEpochFileOfALaterRunAppears_IsFenced|TestZombie",
	},
}
