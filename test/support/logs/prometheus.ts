import type supertest from 'supertest';

/** One metric as the page shows it. */
export interface ShownMetric {
  type: string;
  help: string;
  /** By their labels as they are written, `{kind="run"}`, or an empty text; lines of a histogram with what they add to its name. */
  values: Map<string, number>;
}

/** A page of metrics. */
export interface ShownMetrics {
  text: string;
  all: Map<string, ShownMetric>;
  /** One value. @param labels in the order of the page: `kind="run",outcome="ok"` @throws when it is not shown */
  value(name: string, labels?: string): number;
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^{}]*\})? (\S+)$/;
const LABELS = /^\{([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+\}$/;
const VALUE = /^(?:[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+Inf|-Inf|NaN)$/i;

/**
 * Reads the Prometheus text format 0.0.4 as strictly as it is written: each metric once, HELP and TYPE before its lines,
 * no line twice, whole histograms that only grow.
 *
 * @throws Error that names the line
 */
export function parseMetrics(text: string): ShownMetrics {
  if (!text.endsWith('\n')) throw new Error('The page does not end with a line feed');
  const all = new Map<string, ShownMetric>();
  let current: { name: string; metric: ShownMetric } | null = null;
  let help: { name: string; text: string } | null = null;
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, word, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (word === 'HELP') {
      help = { name, text: rest };
    } else if (word === 'TYPE') {
      if (help?.name !== name || all.has(name)) throw new Error(`No HELP before it, or shown twice: ${line}`);
      if (!/^(counter|gauge|histogram|summary)$/.test(rest)) throw new Error(`No type: ${line}`);
      current = { name, metric: { type: rest, help: help.text, values: new Map() } };
      all.set(name, current.metric);
    } else if (current) {
      addLine(current.name, current.metric, line);
    } else throw new Error(`Of no metric: ${line}`);
  }
  for (const [name, metric] of all) if (metric.type === 'histogram') checkHistogram(name, metric);
  const value = (name: string, labels = '') => {
    const value = all.get(name)?.values.get(labels === '' ? '' : `{${labels}}`);
    if (value === undefined) throw new Error(`${name}{${labels}} is not shown`);
    return value;
  };
  return { text, all, value };
}

function addLine(name: string, { type, values }: ShownMetric, line: string): void {
  const [, lineName = '', labels = '', number = ''] = LINE.exec(line) ?? [];
  if ((labels !== '' && !LABELS.test(labels)) || !VALUE.test(number)) throw new Error(`No sample: ${line}`);
  const suffix = lineName.slice(name.length);
  const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
  if (!lineName.startsWith(name) || !suffixes.includes(suffix)) throw new Error(`Below another metric: ${line}`);
  if (values.has(suffix + labels)) throw new Error(`Twice: ${line}`);
  values.set(suffix + labels, Number(number.replace('Inf', 'Infinity')));
}

/** Every series has buckets that do not shrink, the last of them `+Inf` and equal to its count. */
function checkHistogram(name: string, { values }: ShownMetric): void {
  const last = new Map<string, { le: number; count: number }>();
  for (const [key, count] of values) {
    if (!key.startsWith('_bucket')) continue;
    const le = /[{,]le="([^"]+)"/.exec(key)?.[1] ?? '';
    const series = key
      .slice('_bucket'.length)
      .replace(/,?le="[^"]+"/, '')
      .replace('{,', '{')
      .replace('{}', '');
    const before = last.get(series) ?? { le: -Infinity, count: 0 };
    const bound = le === '+Inf' ? Infinity : Number(le);
    if (!(bound > before.le) || count < before.count) throw new Error(`${name}${key} is no next bucket`);
    last.set(series, { le: bound, count });
  }
  for (const [series, { le, count }] of last) {
    const isWhole = le === Infinity && values.get(`_count${series}`) === count && values.has(`_sum${series}`);
    if (!isWhole) throw new Error(`${name}${series} is no whole histogram`);
  }
}

/** The metrics an answer holds. */
export function metricsOf({ status, text, headers }: supertest.Response): ShownMetrics {
  if (status !== 200) throw new Error(`The page answered ${status} ${text}`);
  if (headers['content-type'] !== 'text/plain; version=0.0.4; charset=utf-8') {
    throw new Error(`The page is ${String(headers['content-type'])}`);
  }
  return parseMetrics(text);
}
