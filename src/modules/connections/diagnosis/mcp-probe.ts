import type { Channel } from '../../../mcp/protocol/channel.js';
import {
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamTimeoutError,
  type UpstreamFailure,
} from '../../../mcp/protocol/mcp-errors.js';
import { ToolCatalog } from '../../../mcp/client/tool-catalog.js';
import { DomainError } from '../../../platform/errors/domain-error.js';
import { quoted } from '../../../platform/text/quoted.js';
import { statusAfter } from '../core/connection-status.js';
import type { DiagnosisLog } from './diagnosis-log.js';

/** Opens a session with a server and lists its tools. Calls none of them. @throws StepFailedError */
export async function probeMcp(
  channel: Channel,
  log: DiagnosisLog,
  left: () => number,
  { overHttp }: { overHttp: boolean },
): Promise<void> {
  const startedAt = performance.now();
  const past = () => performance.now() - startedAt;
  try {
    const { era, protocolVersion, serverInfo } = await channel.open(left());
    if (overHttp) log.ok('http', 'It answers requests.', past());
    const server = `${quoted(serverInfo.name)} ${quoted(serverInfo.version)}`;
    log.ok('era', `It speaks MCP ${protocolVersion} (${era}) and calls itself ${server}.`, past());
    log.ok('authorization', 'It takes us as who we are.');
  } catch (error) {
    const failure = requireFailure(error);
    const step = overHttp ? stepOf(failure) : 'era';
    if (step !== 'http' && overHttp) log.ok('http', 'It answers requests.', past());
    if (step === 'authorization') log.skip('era', 'It says nothing before it knows who asks.');
    log.fail(step, failure, past());
  }
  const list = async () => {
    const { length } = await new ToolCatalog(channel).list(left());
    return `It lists ${length === 1 ? 'one tool' : `${length} tools`}.`;
  };
  await log.run('list', list, requireFailure);
}

/** The step at which a failure to open the session happened. */
function stepOf(failure: Error): 'http' | 'era' | 'authorization' {
  const state = statusAfter(failure)?.state;
  if (state === 'auth_required' || state === 'input_required') return 'authorization';
  const cause = (failure as DomainError).detail instanceof UpstreamError ? (failure as DomainError).detail : failure;
  if (!(cause instanceof UpstreamError)) return failure instanceof UpstreamAuthRequiredError ? 'authorization' : 'http';
  return cause.hint === 'forbidden' ? 'authorization' : cause.hint === 'not our MCP' ? 'era' : 'http';
}

/** Rethrows an error that is not a failure of the upstream. */
function requireFailure(error: unknown): UpstreamFailure | UpstreamTimeoutError {
  if (error instanceof DomainError && statusAfter(error)) return error as UpstreamFailure;
  throw error;
}
