/** How much a change matters: to nobody, to those who should look at it, or to callers that work today, or are safe today. */
export const changeLevels = ['compatible', 'risky', 'breaking'] as const;
export type ChangeLevel = (typeof changeLevels)[number];

/** The worst of the changes; `none` without any. */
export const contractSummaries = ['none', ...changeLevels] as const;
export type ContractSummary = (typeof contractSummaries)[number];

/** What changes are found by: a release that becomes current, or another scan of the one that is. */
export const contractFinders = ['release', 'rescan'] as const;
export type ContractFinder = (typeof contractFinders)[number];

/** One difference between what two releases offer. */
export interface ContractChange {
  /** What changed, e.g. `tool_removed`, `now_required`. */
  kind: string;
  level: ChangeLevel;
  /** The tool; null when it is a resource or a prompt. */
  tool: string | null;
  /** Where in the tool: `inputSchema.city`. What else is meant: `prompts.review`. Null for a tool as a whole. */
  path: string | null;
  /** A sentence that needs tool and path beside it. */
  message: string;
}

/** The level of the worst. */
export function summaryOf(changes: ContractChange[]): ContractSummary {
  return [...changeLevels].reverse().find((level) => changes.some((change) => change.level === level)) ?? 'none';
}
