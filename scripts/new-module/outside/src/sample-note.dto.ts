import { ApiProperty } from '@nestjs/swagger';
import { IsText } from '@slipway/module';

export class CreateSampleNoteDto {
  @ApiProperty({ description: 'Up to 1,000 characters.', example: 'Sunny' })
  @IsText(1_000)
  text: string;
}

export class SampleNoteDto {
  @ApiProperty({ example: '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' })
  id: string;

  @ApiProperty({ example: 'Sunny' })
  text: string;

  @ApiProperty({ example: '2026-11-20T10:15:00.000Z' })
  createdAt: string;
}

export class SampleNoteListDto {
  @ApiProperty({ type: [SampleNoteDto], description: 'The 100 newest, newest first.' })
  sampleNotes: SampleNoteDto[];
}
