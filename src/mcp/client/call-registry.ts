import { CallList } from '../../platform/limits/call-list.js';
import type { McpCall } from '../protocol/channel.js';
import { asCallError, RestartingError } from '../protocol/mcp-errors.js';

/** Calls of this process that wait for an upstream. */
export const callsOfProcess = new CallList<{ call: McpCall; reject: (reason: unknown) => void }>();

/** Fails every waiting call, because the process is about to exit. */
export function failPendingCalls(): void {
  for (const { call, reject } of callsOfProcess.filter(() => true)) reject(asCallError(new RestartingError(), call));
}
