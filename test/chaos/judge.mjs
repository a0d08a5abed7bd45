/** The verdict on a chaos run. */

/**
 * The faults of the service among the calls.
 *
 * @param calls of the callers; each gets `isExecuted`
 * @param faults that the run caused: `part`, `fault`, `startedAt`, `overAt` and `readyAt`
 * @param executions by token, counted where it is executed
 */
export function judge(calls, faults, executions) {
  const kills = faults.filter(({ fault }) => fault === 'kill' || fault === 'worker');
  const wasKilled = ({ at, startedAt, endedAt }) =>
    kills.some((kill) => kill.part === `api ${at + 1}` && kill.startedAt <= endedAt && kill.overAt >= startedAt);
  // A process that ends in order may close a connection whose request it never read.
  const wasDisturbed = ({ at, startedAt, endedAt }) =>
    faults.some(
      (disruption) =>
        disruption.part === `api ${at + 1}` && disruption.startedAt <= endedAt && disruption.readyAt >= startedAt,
    );
  const verdicts = { unsaid: [], notExecuted: [], twice: [], wrong: [], unanswered: [] };
  for (const call of calls) {
    const count = executions.get(call.token) ?? 0;
    call.isExecuted = count > 0;
    if (count > 1) verdicts.twice.push(call);
    if (call.outcome === 'answered' && count === 0) verdicts.notExecuted.push(call);
    if (call.outcome === 'wrong') verdicts.wrong.push(call);
    if (call.outcome === 'refused' && count > 0) verdicts.unsaid.push(call);
    if (call.outcome === 'lost' && !wasKilled(call)) {
      if (count > 0) verdicts.unsaid.push(call);
      else if (call.isHung || !wasDisturbed(call)) verdicts.unanswered.push(call);
    }
  }
  return verdicts;
}

/** The verdicts in words. */
export const labels = {
  unsaid: 'executed but not answered, without saying so',
  notExecuted: 'answered but not executed',
  twice: 'executed twice',
  wrong: 'wrong answers',
  unanswered: 'connections lost or left open without a reason',
};
