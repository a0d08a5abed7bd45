import { DiscoveryService } from '@nestjs/core';

/** Options of a hook. */
export interface HookOptions {
  /** Hooks run in ascending order; hooks with equal values, by the name `Module.Provider.method`. Default: 0. */
  order?: number;
  /** Time in milliseconds after which the hook has failed. Default: 5,000, at most 30,000. */
  timeoutMs?: number;
  /**
   * What happens if the hook throws anything but a `DomainError`, or takes too long. `reject`, the default: the call is
   * rejected without the reason. `ignore`: the call is sent without the hook. Both are logged.
   */
  onFailure?: 'reject' | 'ignore';
}

export const BeforeCallMarker = DiscoveryService.createDecorator<HookOptions>();
export const AfterCallMarker = DiscoveryService.createDecorator<HookOptions>();

/**
 * Calls a method of a provider before each `tools/call`, over every interface: REST, every revision of MCP, a
 * namespace, a run endpoint, a page, or `Tools.call` of a module. The process needs the role `api`, which a module has
 * by default.
 *
 * The method receives a `HookedCall`. It accepts the call by returning nothing, replaces the arguments by returning
 * others, and rejects the call by throwing a `DomainError` such as `ForbiddenError`: the caller receives its message,
 * over REST with its status, over MCP as a JSON-RPC error. A call that a hook makes runs no hooks of the same module.
 *
 * Progress, notifications, tasks, resources and prompts pass without hooks.
 *
 * @example class Office {
 *   @BeforeCall({ timeoutMs: 500 })
 *   refuseAtNight({ tool, target }: HookedCall) {
 *     if (tool.startsWith('delete') && isNight()) throw new ForbiddenError(`${target.name} deletes nothing at night`);
 *   } }
 * @stability preview
 */
export function BeforeCall(options: HookOptions = {}): MethodDecorator {
  return BeforeCallMarker(options);
}

/**
 * Calls a method of a provider with each result of a `tools/call`, before the caller receives it and the log records
 * it. The method receives the `HookedCall`, with the arguments that were sent, and the result of MCP. It returns
 * nothing, or a result that replaces it. It withholds the result by throwing a `DomainError`: the tool has already run
 * by then. JSON-RPC errors pass without hooks.
 *
 * @example class Redaction {
 *   @AfterCall({ order: 10 })
 *   hideNumbers(call: HookedCall, result: Record<string, unknown>) {
 *     return JSON.parse(JSON.stringify(result).replace(/\d{16}/g, '****')) as Record<string, unknown>;
 *   } }
 * @stability preview
 */
export function AfterCall(options: HookOptions = {}): MethodDecorator {
  return AfterCallMarker(options);
}
