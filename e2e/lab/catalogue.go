package lab

import "time"

// Catalogue is every scenario but the held-out ones: first those of the measurements, then those of the limiter study and the drills, then the
// relatives of the held-out ones.
func Catalogue() []Scenario {
	all := []Scenario{
		Unthrottled(), FreshOne503(), FreshAll503(), AllAtOnce(8), AllAtOnce(32), FirstEight(), CallDeadline(), SecondClient(),
	}
	for _, d := range []time.Duration{10, 30, 60, 100, 500, 1100} {
		all = append(all, SixteenThenOne(d*time.Millisecond))
	}
	for _, every := range []time.Duration{10, 5, 3, 2} {
		for _, rate := range []int{20, 80, 320} {
			all = append(all, DripRun(rate, every*time.Second))
		}
	}
	all = append(all, DripOn(80, 3*time.Second), Bursts(time.Second), Bursts(3*time.Second), BurstsAtWall())
	for _, threads := range []int{48, 96, 128, 256} {
		all = append(all, WallRun(threads, time.Minute))
	}
	all = append(all,
		WallRun(96, 5*time.Minute), Fast503(), ClosedWall(0.5), ClosedWall(1), RetryAfterWall(2*time.Second), ScatteredLatency(),
		SmallWall(), BucketWall(), S3Prefix(), WallAndNoise(0.01),
		Steps(), OutageRun(10*time.Second, 32), OutageRun(30*time.Second, 32), OutageRun(time.Minute, 32), OneThreadOutage(), ThreeLayers(),
		PersistentOutage(), Clients(2, 32, 400), Clients(4, 32, 400), Clients(16, 32, 400), PRShape(256), PRShape(32), PRShape(16),
		SixteenOnQuota25(), Latecomer(), SynchronizedRestarts(), HotPrefix(2), HotPrefix(10), Isolation(),
		RandomRun(0.005), RandomRun(0.01), RandomRun(0.02), RandomRun(0.05), RandomRun(0.10), LostAnswers(0.02),
		FixedWindowRun(), SlowCalls(), TimeoutCollapse(), SlowDependency(), QueueRun(0), QueueRun(300*time.Millisecond),
		ByteWallRun(), ScalingRun(false), ScalingRun(true), ScalingPrefix(),
	)
	return append(all, Relatives()...)
}
