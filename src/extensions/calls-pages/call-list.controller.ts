import { Controller, Get, Query } from '@nestjs/common';
import { ApiTags } from '#api-docs';
import { Access, ApiErrors, CurrentCaller, HOUR_MS, type Caller } from '../../extension.js';
import { CallDto, CallListDto, CallsQueryDto } from './call.dto.js';
import { PERIODS } from './calls.page.js';
import { CallsRepository, type FoundCall } from './calls.repository.js';

/** Time after which the search reads no further window. */
const SEARCH_MS = 500;

/** The recorded calls of everything that an account can see. */
@ApiTags('Runtime logs')
@Controller('calls')
export class CallListController {
  constructor(private readonly callsRepository: CallsRepository) {}

  /**
   * List the calls of everything that you can see. These are all calls of connections and servers that you manage, and your own calls of other
   * connections, newest first, without arguments and results. A key with scopes in some namespaces lists only calls of their targets.
   */
  @Get()
  @Access('connections:read')
  @ApiErrors(
    400,
    { status: 503, message: 'Too many requests of this kind are at work: try again in a few seconds' },
    { status: 504, message: 'The search took longer than 10 s: choose a shorter period or a target' },
  )
  async list(@CurrentCaller() caller: Caller, @Query() query: CallsQueryDto): Promise<CallListDto> {
    const { target, account, tool, outcome, since = '24h', all: isAll = false, limit = 50, cursor: before } = query;
    const from = new Date(Date.now() - PERIODS[since].hours * HOUR_MS);
    const filter = { from, target, account, tool, outcome, isAll, before };
    const { calls, end } = await this.callsRepository.list(caller, filter, limit + 1, SEARCH_MS);
    const page = calls.slice(0, limit).map(toCallDto);
    return { calls: page, nextCursor: calls.length > limit ? (page.at(-1)?.id ?? null) : end };
  }
}

function toCallDto(call: FoundCall): CallDto {
  const { id, at, kind, target, tool, method, outcome, durationMs, callerId, accountName, exceptions } = call;
  const { credentialId, credentialKind, credentialName, client } = call;
  return {
    id,
    at: at.toISOString(),
    ...{ kind, target, tool, method, outcome, durationMs },
    caller:
      callerId === null
        ? null
        : {
            account: { id: callerId, name: accountName },
            credential: { id: credentialId, kind: credentialKind, name: credentialName },
            client,
          },
    exceptions: exceptions.map(({ name, message }) => ({ name, message })),
  };
}
