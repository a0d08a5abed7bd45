import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import {
  type CallHookRunner,
  CallHooks,
  type DecoratedMethod,
  DecoratedMethods,
  DomainError,
  errorOf,
  type HookedCall,
  withTimeout,
} from '../../extension.js';
import { AfterCallMarker, BeforeCallMarker, type HookOptions } from './call-hook.decorators.js';

const TIMEOUT_MS = 5_000;
const TIMEOUT_MS_MAX = 30_000;
const LATE = Symbol('late');

type Hook = DecoratedMethod<HookOptions>;

class HookFailedError extends errorOf('unavailable') {
  constructor(module: string) {
    super(
      `The module ${module}, which checks calls of tools, has failed: try again later, or ask who operates this service`,
    );
  }
}

/** Calls the hooks of modules. Without hooks, calls are forwarded unchanged. */
@Injectable()
export class CallHooksService implements OnModuleInit, CallHookRunner {
  private readonly logger = new Logger('hooks');
  private readonly modules = new AsyncLocalStorage<readonly string[]>();
  private beforeHooks: Hook[] = [];
  private afterHooks: Hook[] = [];

  constructor(
    private readonly callHooks: CallHooks,
    private readonly decoratedMethods: DecoratedMethods,
  ) {}

  onModuleInit(): void {
    this.beforeHooks = inOrder(this.decoratedMethods.find(BeforeCallMarker));
    this.afterHooks = inOrder(this.decoratedMethods.find(AfterCallMarker));
    if (this.beforeHooks.length + this.afterHooks.length > 0) this.callHooks.runner = this;
  }

  async beforeCall(call: HookedCall): Promise<Record<string, unknown> | null> {
    let replaced: Record<string, unknown> | null = null;
    for (const hook of this.beforeHooks)
      replaced = (await this.run(hook, { ...call, arguments: replaced ?? call.arguments })) ?? replaced;
    return replaced;
  }

  async afterCall(call: HookedCall, result: Record<string, unknown>): Promise<Record<string, unknown> | null> {
    let replaced: Record<string, unknown> | null = null;
    for (const hook of this.afterHooks) replaced = (await this.run(hook, call, replaced ?? result)) ?? replaced;
    return replaced;
  }

  /** @returns the new arguments or result; null if unchanged */
  private async run(hook: Hook, ...args: unknown[]): Promise<Record<string, unknown> | null> {
    const running = this.modules.getStore() ?? [];
    const { name, module, options } = hook;
    if (running.includes(module)) return null;
    const timeoutMs = Math.min(options.timeoutMs ?? TIMEOUT_MS, TIMEOUT_MS_MAX);
    try {
      const called = this.modules.run([...running, module], async () => hook.call(...args));
      const answer = await withTimeout(timeoutMs, called, LATE);
      if (answer === LATE) throw new Error(`It did not end within ${timeoutMs} ms`);
      if (answer === undefined || answer === null) return null;
      if (typeof answer === 'object' && !Array.isArray(answer)) return answer as Record<string, unknown>;
      throw new Error('It returned something else than an object or nothing');
    } catch (error) {
      if (error instanceof DomainError) throw error;
      this.logger.error({ msg: `${name} failed`, err: error });
      if (options.onFailure === 'ignore') return null;
      throw new HookFailedError(module);
    }
  }
}

function inOrder(hooks: Hook[]): Hook[] {
  const orderOf = ({ options }: Hook) => options.order ?? 0;
  return hooks.sort((a, b) => orderOf(a) - orderOf(b) || (a.name < b.name ? -1 : 1));
}
