package quota

// What the pull request reported (apache/flink#29499): a streaming SQL job,
// datagen into the filesystem sink, 1 KiB rows, 128 MiB part files of parts of
// about 6 MB, checkpoints every 5 minutes, against a store with a request quota.

// publishedDeaths are its jobs of 1 TiB with standard retries, none of which came
// to its end, by pair.
var publishedDeaths = map[string]string{
	"256 writers, 10 retries": "31 s",
	"256 writers, 20 retries": "2 min 20 s",
	"32 writers, 10 retries":  "about 5 min",
}

// publishedTable is its job of 100 GiB with 16 writers, 10 retries and two
// processes: standard, adaptive.
var publishedTable = map[string][2]string{
	rowWriteTime:     {"17 min 15 s", "14 min 40 s"},
	rowWriteRate:     {"104 MB/s", "122 MB/s"},
	rowCalls:         {"20,080", "20,096"},
	rowThrottled:     {"2,164", "743"},
	rowRetried:       {"4,351", "1,350"},
	rowAttempts:      {"24,431", "21,446"},
	rowShare:         {"8.9 %", "3.5 %"},
	rowCompleted:     {"19.4", "22.8"},
	rowRejected:      {"2.1", "0.8"},
	rowReadTime:      {"3 min 20 s", "3 min 44 s"},
	rowReadRate:      {"537 MB/s", "480 MB/s"},
	rowReadThrottled: {"551", "395"},
	rowReadCompleted: {"12.0", "10.7"},
}
