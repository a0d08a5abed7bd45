import { Body, Delete, Get, Param, Put, Query } from '@nestjs/common';
import { ApiOkResponse, ApiTags } from '#api-docs';
import { Access, ApiErrors, ConnectionController, CurrentCaller, CurrentNamespace } from '../../extension.js';
import { ownConnections, ownConnectionsOnly, SuccessDto, type Caller, type OwnedNamespace } from '../../extension.js';
import {
  RecordedCallsDto,
  RecordedCallsQueryDto,
  RecordedFixtureDto,
  RecordingDto,
  SetRecordingDto,
} from './recording.dto.js';
import { RecordingsService } from './recordings.service.js';

@ApiTags('Connections')
@ConnectionController('recording')
export class RecordingController {
  constructor(private readonly recordingsService: RecordingsService) {}

  /**
   * Start or stop recording the connection's tool calls. A mock with the scenario `replay:{connectionId}` in the same
   * namespace returns the recorded results.
   */
  @Put()
  @Access('connections:write', ownConnections)
  @ApiOkResponse({ type: RecordingDto })
  @ApiErrors(400, 404)
  set(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
    @Body() { enabled }: SetRecordingDto,
  ): Promise<RecordingDto> {
    return this.recordingsService.set(caller, { namespace, id }, enabled);
  }

  /** Get the state and size of a recording, without its contents. New calls appear within a second. */
  @Get()
  @Access('connections:read', ownConnections)
  @ApiOkResponse({ type: RecordingDto })
  @ApiErrors(404)
  get(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
  ): Promise<RecordingDto> {
    return this.recordingsService.get(caller, { namespace, id });
  }

  /** List the recorded calls with arguments and results. Only the owner can read them, including calls by other accounts. */
  @Get('calls')
  @Access('connections:read', ownConnectionsOnly)
  @ApiOkResponse({ type: RecordedCallsDto })
  @ApiErrors(400, 404)
  calls(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
    @Query() query: RecordedCallsQueryDto,
  ): Promise<RecordedCallsDto> {
    return this.recordingsService.listCalls(caller, { namespace, id }, query);
  }

  /**
   * Export the recording as a fixture. A mock takes it as its scenario while it has at most 10,000 characters; a longer recording is
   * replayed with `replay:{connectionId}`. Only the owner can export it.
   */
  @Get('fixture')
  @Access('connections:read', ownConnectionsOnly)
  @ApiOkResponse({ type: RecordedFixtureDto })
  @ApiErrors(404)
  fixture(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
  ): Promise<RecordedFixtureDto> {
    return this.recordingsService.fixture(caller, { namespace, id });
  }

  /** Stop recording and delete the recorded calls. Mocks created from them remain. */
  @Delete()
  @Access('connections:write', ownConnections)
  @ApiErrors(404)
  remove(
    @CurrentNamespace() namespace: OwnedNamespace,
    @CurrentCaller() caller: Caller,
    @Param('connectionId') id: string,
  ): Promise<SuccessDto> {
    return this.recordingsService.remove(caller, { namespace, id });
  }
}
