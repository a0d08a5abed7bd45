/** Names and values from fixed lists only: a label that tenants choose would grow without end, and tell what they do. */
export type Labels = Readonly<Record<string, string>>;

/** One value of a metric. */
export interface Sample {
  labels: Labels;
  value: number;
  /** Set where a line is named otherwise than its metric, as those of a histogram are. */
  name?: string;
}

/** How often each of a few things happened. Counting is an addition: it may stand on the way of a call. */
export class Counts<Key extends string> {
  private readonly counts: Record<Key, number>;

  /** @param keys all there are: each is shown from the start, so that the first time it happens can be seen */
  constructor(
    private readonly label: string,
    private readonly keys: readonly Key[],
  ) {
    this.counts = Object.fromEntries(keys.map((key) => [key, 0])) as Record<Key, number>;
  }

  add(key: Key, by = 1): void {
    this.counts[key] += by;
  }

  samples(labels: Labels = {}): Sample[] {
    return this.keys.map((key) => ({ labels: { ...labels, [this.label]: key }, value: this.counts[key] }));
  }
}

/** Upper ends of the buckets: from a call that was refused here to one that took all the time it may. */
const BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const BOUNDS_MS = BOUNDS_SECONDS.map((seconds) => seconds * 1_000);

/** How long something took, counted in buckets. Observing allocates nothing: it may stand on the way of a call. */
export class Durations {
  private readonly counts = new Float64Array(BOUNDS_MS.length + 1);
  private sumMs = 0;

  observe(ms: number): void {
    let bucket = 0;
    while (bucket < BOUNDS_MS.length && ms > BOUNDS_MS[bucket]) bucket += 1;
    this.counts[bucket] += 1;
    this.sumMs += ms;
  }

  /** @param name the metric's, which its lines extend */
  samples(name: string, labels: Labels = {}): Sample[] {
    let below = 0;
    const buckets = [...this.counts].map((count, i) => {
      below += count;
      const le = i < BOUNDS_SECONDS.length ? String(BOUNDS_SECONDS[i]) : '+Inf';
      return { name: `${name}_bucket`, labels: { ...labels, le }, value: below };
    });
    return [
      ...buckets,
      { name: `${name}_sum`, labels, value: this.sumMs / 1_000 },
      { name: `${name}_count`, labels, value: below },
    ];
  }
}
