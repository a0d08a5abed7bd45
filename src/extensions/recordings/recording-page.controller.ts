/** The forms of the card *Recording* on the page of a connection, and the download of the recording as a fixture. */
import { Controller, Get, Header, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  CurrentPage,
  Form,
  ownConnections,
  ownConnectionsOnly,
  Page,
  Redirect,
  type PageRequest,
} from '../../extension.js';
import { RecordedFixtureDto } from './recording.dto.js';
import { RecordingsService } from './recordings.service.js';

type ConnectionRequest = PageRequest<{ namespace: string; connectionId: string }>;

@Controller('ui/c/:namespace/:connectionId')
export class RecordingPageController {
  constructor(private readonly recordingsService: RecordingsService) {}

  /** Downloads the recording as a fixture. */
  @Get('fixture')
  @Header('cache-control', 'no-store')
  @Page('connections:read', ownConnectionsOnly)
  fixture(
    @CurrentPage() page: ConnectionRequest,
    @Res({ passthrough: true }) response: Response,
  ): Promise<RecordedFixtureDto> {
    response.attachment(`${page.params.connectionId}.json`);
    return this.recordingsService.fixture(page.person, connectionOf(page));
  }

  @Post('record')
  @Form('connections:write', ownConnections)
  async record(@CurrentPage() page: ConnectionRequest): Promise<Redirect> {
    await this.recordingsService.set(page.person, connectionOf(page), true);
    return redirectAfter('record', page);
  }

  @Post('stop')
  @Form('connections:write', ownConnections)
  async stop(@CurrentPage() page: ConnectionRequest): Promise<Redirect> {
    await this.recordingsService.set(page.person, connectionOf(page), false);
    return redirectAfter('stop', page);
  }

  @Post('forget')
  @Form('connections:write', ownConnections)
  async forget(@CurrentPage() page: ConnectionRequest): Promise<Redirect> {
    await this.recordingsService.remove(page.person, connectionOf(page));
    return redirectAfter('forget', page);
  }
}

const connectionOf = ({ namespace, params }: ConnectionRequest) => ({ namespace, id: params.connectionId });

/** Redirects to the page of the connection, which shows the message for the word. */
function redirectAfter(word: string, { params: { namespace, connectionId } }: ConnectionRequest): Redirect {
  return new Redirect(`ui/c/${encodeURIComponent(namespace)}/${encodeURIComponent(connectionId)}?done=${word}`);
}
