import { Injectable } from '@nestjs/common';

/** Looks at what tools answer, to learn what their answers look like. */
@Injectable()
export class ToolOutputsService {
  /**
   * Shows it one answer to `tools/call`. Stands on the way of calls: it never waits, never throws, and looks at the answer
   * later, if at all.
   *
   * @param result the CallToolResult as JSON text
   */
  observe(_serverId: string, _toolName: string, _result: string): void {}

  /** JSON Schema (2020-12) of what a tool's structured answers looked like; null when none were seen. */
  inferred(_serverId: string, _toolName: string): Promise<Record<string, unknown> | null> {
    return Promise.resolve(null);
  }
}
