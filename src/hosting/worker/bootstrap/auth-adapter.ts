import type { AuthAdapter, UserModule } from './user-module.js';

const ACTIONS = ['getAuthorizationUrl', 'exchangeCode', 'refreshToken'] as const;

/** Responds to `{action, payload}` with `{ok: true, value}`, or `{ok: false, error, message}`. */
export async function answerAuth(
  request: Request,
  create: NonNullable<UserModule['createAuthAdapter']>,
  env: Record<string, string>,
  config: unknown,
): Promise<Response> {
  if (request.method !== 'POST') return errorResponse(405, 'method_not_allowed', 'Use POST.');
  const body = (await request.json().catch(() => null)) as { action?: unknown; payload?: object } | null;
  const { action, payload } = body ?? {};
  const operation = ACTIONS.find((name) => name === action);
  if (!operation) return errorResponse(400, 'unknown_action', `action must be one of ${ACTIONS.join(', ')}.`);
  let adapter: AuthAdapter;
  try {
    adapter = await create({ env });
  } catch (error) {
    console.error(error);
    return errorResponse(500, 'adapter_init_failed', messageOf(error));
  }
  try {
    return Response.json({ ok: true, value: await adapter[operation]({ ...payload, config }) });
  } catch (error) {
    console.error(error);
    return errorResponse(500, 'adapter_error', messageOf(error));
  }
}

function errorResponse(status: number, error: string, message: string): Response {
  return Response.json({ ok: false, error, message }, { status });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
