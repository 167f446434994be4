package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnv_MapsEachKnownKeyToOneVariable(t *testing.T) {
	for key, want := range map[string]string{
		"s3.endpoint":              "SLUICE_S3_ENDPOINT",
		"s3.access-key":            "SLUICE_S3_ACCESS__KEY",
		"s3.access.key":            "SLUICE_S3_ACCESS_KEY",
		"s3.retry.max-num-retries": "SLUICE_S3_RETRY_MAX__NUM__RETRIES",
	} {
		assert.Equal(t, want, envName(key))
	}
	c := load(t, Env([]string{"PATH=/bin", "=C:=C:\\", "SLUICE", "SLUICE_S3_ENDPOINT=http://a=b", "s3_endpoint=no"}))
	assert.Equal(t, "http://a=b", Get(c, keyEndpoint))
}

func TestEnv_OfTwoEntriesTheLastCounts(t *testing.T) {
	c := load(t, Env([]string{"SLUICE_S3_ENDPOINT=old", "SLUICE_S3_ENDPOINT=new"}))
	assert.Equal(t, "new", Get(c, keyEndpoint))
}

func TestEnv_AnUnknownVariableIsAnErrorThatNamesTheNearest(t *testing.T) {
	assert.Equal(t, []string{
		`environment SLUICE_DATAGEN_FIELDS_F0_KIND: unknown key "SLUICE_DATAGEN_FIELDS_F0_KIND": datagen.fields.#.kind has a name of the user's choice in it and cannot come from the environment`,
		`environment SLUICE_NOTHING_LIKE_IT_AT_ALL: unknown key "SLUICE_NOTHING_LIKE_IT_AT_ALL"`,
		`environment SLUICE_S3_ACESS_KEY: unknown key "SLUICE_S3_ACESS_KEY", the nearest known key is "SLUICE_S3_ACCESS__KEY"`,
		`environment SLUICE_s3_endpoint: unknown key "SLUICE_s3_endpoint", the nearest known key is "SLUICE_S3_ENDPOINT"`,
	}, problems(t, Env([]string{"SLUICE_S3_ACESS_KEY=a", "SLUICE_s3_endpoint=", "SLUICE_DATAGEN_FIELDS_F0_KIND=red", "SLUICE_NOTHING_LIKE_IT_AT_ALL=1"})))
}

func TestPairs_OfTwoPairsTheLastCounts(t *testing.T) {
	c := load(t, Pairs("-D", []string{"s3.endpoint=old", "s3.endpoint=a=b"}))
	assert.Equal(t, "a=b", Get(c, keyEndpoint))
	assert.Equal(t, Origin{Source: "-D"}, c.Effective()[2].Origin)
}

func TestPairs_WithoutKeyOrSignAreErrorsThatDoNotRepeatThem(t *testing.T) {
	assert.Equal(t, []string{"-D: argument 1 is not key=value", "-D: argument 3 is not key=value"},
		problems(t, Pairs("-D", []string{"s3.secret-key:hunter2", "s3.endpoint=", "=hunter2"})))
}
