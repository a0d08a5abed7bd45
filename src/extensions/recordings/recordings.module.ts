import { Module } from '@nestjs/common';
import { ConnectionCoreModule, HOUR_MS, MockModule, roleModule, scheduledDeletion } from '../../extension.js';
import { CallRecorder } from './call-recorder.js';
import { RecordingController } from './recording.controller.js';
import { RecordingPageController } from './recording-page.controller.js';
import { RecordingSlot } from './recording.slot.js';
import { RecordingsRepository } from './recordings.repository.js';
import { RecordingsService } from './recordings.service.js';

@Module({})
export class RecordingsModule {
  static readonly forRoles = roleModule((env) => ({
    module: RecordingsModule,
    api: {
      imports: [ConnectionCoreModule.forRoles(env), MockModule.forRoles(env)],
      controllers: [RecordingController, RecordingPageController],
      providers: [
        CallRecorder,
        RecordingSlot,
        RecordingsRepository,
        RecordingsService,
        scheduledDeletion('deletion of expired recordings', HOUR_MS, RecordingsRepository, (recordings, now) =>
          recordings.deleteExpired(now),
        ),
      ],
    },
  }));
}
